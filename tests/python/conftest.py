"""Fixtures of all tests."""

import importlib.util
import json
import os
import signal
import sys
from collections.abc import Generator
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import settings

from bentpipe import cli

from . import live
from .commands import SMALL, CommandResult
from .groups import group_of, order, precedence

# A property holds or it doesn't; how long it takes depends on what else the machine does.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


# Says to the processes of pytest-xdist that whoever started the tests ignores SIGHUP.
_NOHUP = "BENTPIPE_TESTS_UNDER_NOHUP"


def pytest_configure() -> None:
    """Give the programs that tests start the usual signal dispositions.

    A shell's `&` ignores SIGINT, and nohup ignores SIGHUP; children would inherit both. A handler
    instead becomes the default in a child, and a hangup still does not end the tests.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        os.environ[_NOHUP] = "1"
    if _NOHUP in os.environ:
        signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Have pytest-xdist share out whole groups, which `groups.group_of` defines.

    Its own `--dist loadgroup` does not: with pytest 9.2 it no longer sets the group of a test.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):  # type: ignore[misc]
        """Groups in the order of `groups.order`, each in one process."""

        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return Groups(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the groups that take longest."""
    items.sort(key=lambda item: order(item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Give tests in real time precedence over those that only calculate."""
    with precedence(item.nodeid):
        return (yield)


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
    if report.when == "call" and live.repetitions:
        report.user_properties += [("repeated", what) for what in live.repetitions]
        live.repetitions.clear()
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests in real time that were repeated."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, what in getattr(report, "user_properties", ()):
                if name == "repeated":
                    terminalreporter.write_line(f"REPEATED {report.nodeid}: {what}")


@pytest.fixture(scope="module")
def reproduction(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with a quick reproduction of the study that the module names in STUDY."""
    out = tmp_path_factory.mktemp("reproduction")
    study = request.module.STUDY
    with redirect_stderr(StringIO()) as said:
        assert cli.execute(["reproduce", study, "--quick", "--out", str(out)]) == 0
    # Where no bar is shown, a line says what begins.
    assert [line.split(" (")[0] for line in said.getvalue().splitlines()] == [
        f"{study}: simulating",
        f"{study}: drawing",
    ]
    return out


@pytest.fixture
def has_figures(request: pytest.FixtureRequest, reproduction: Path) -> bool:
    """Whether every figure or table in the module's FIGURES is there, with numbers behind it."""
    folder = reproduction / request.module.STUDY
    for number in request.module.FIGURES:
        table = folder / f"table-{number}.parquet"
        figure = folder / f"figure-{number}.parquet"
        assert table.is_file() or figure.with_suffix(".svg").is_file()
        numbers = table if table.is_file() else figure
        assert pq.read_table(numbers).num_rows > 0
        assert len(numbers.with_suffix(".csv").read_text().splitlines()) > 1
    # Claims name figures and tables that exist.
    for claim in json.loads((reproduction / "claims.json").read_text()):
        for name in claim["figures"]:
            places = (f"figure-{name}.csv", f"table-{name}.csv", f"{name.replace(' ', '-')}.csv")
            assert any((folder / place).is_file() for place in places), (claim["id"], name)
    return True


@pytest.fixture(scope="module")
def claims(reproduction: Path) -> dict[str, Any]:
    """Return the verdicts of that reproduction, by the claim's id."""
    verdicts = json.loads((reproduction / "claims.json").read_text())
    return {verdict["id"]: verdict for verdict in verdicts}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return the file of a scenario that takes a moment."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.fixture
def bentpipe(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs the command line in this process and returns its outcome."""

    def call(*arguments: object) -> CommandResult:
        status = cli.execute([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return CommandResult(status, captured.out, captured.err)

    return call


def load_script(path: Path) -> Any:
    """Return a script of the repository as a module: it is in no package."""
    # It finds those beside it, as it does when it is run; at the end, so that it hides no other.
    beside = str(path.parent)
    if beside not in sys.path:
        sys.path.append(beside)
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look themselves up there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
