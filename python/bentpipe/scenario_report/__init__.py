"""A report of the user's own scenarios: one HTML file for somebody who has to decide."""

from bentpipe.scenario_report.evidence import Evidence, Report, gather

__all__ = ["Evidence", "Report", "gather"]
