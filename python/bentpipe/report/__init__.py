"""One self-contained HTML page of everything that was reproduced."""

from bentpipe.report.page import write_report

__all__ = ["write_report"]
