"""What all tests share."""

import os
from collections.abc import Generator

import pytest
from hypothesis import settings

# A property holds or it doesn't; how long it takes depends on what else the machine does.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Have a skipped test fail where every witness must be there, as in continuous integration.

    A reason that begins with "optional" is no missing witness.
    """
    del item, call
    report = yield
    required = os.environ.get("BENTPIPE_WITNESSES") == "required"
    if required and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not reason.removeprefix("Skipped: ").startswith("optional"):
            report.outcome = "failed"
            report.longrepr = f"{reason}; BENTPIPE_WITNESSES=required"
    return report
