"""Progress of a run: silent for a second, then one line that leaves no trace."""

from __future__ import annotations

import io
import re

import pytest

import bentpipe
from bentpipe.cli.progress import ProgressLine, progress_text, somebody_looks

LONG = {
    "name": "long",
    "duration": "10 min",
    "hosts": {"server": {}, "client": {}},
    "links.path": {"between": ["server", "client"], "rate": "40 Mbit/s", "delay": "20 ms"},
    "flows.download": {"from": "server", "to": "client", "app.kind": "bulk"},
}


def test_run_reports_progress() -> None:
    heard: list[tuple[float, float]] = []
    bentpipe.run(LONG, progress=lambda now, end: heard.append((now, end)))
    times = [now for now, _ in heard]
    assert len(times) > 3
    assert times == sorted(times)
    assert 0.0 < times[0] <= times[-1] <= 600.0
    assert {end for _, end in heard} == {600.0}


def test_exception_in_the_progress_callback_ends_the_run() -> None:
    def fail(now_s: float, duration_s: float) -> None:
        raise ZeroDivisionError(f"at {now_s} of {duration_s}")

    with pytest.raises(ZeroDivisionError, match=r"of 600\.0$"):
        bentpipe.run(LONG, progress=fail)


def test_progress_line_appears_after_a_second_and_is_erased() -> None:
    now = 100.0
    stream = io.StringIO()
    line = ProgressLine(stream, clock=lambda: now)
    line.report(1.0, 36_000.0)
    assert stream.getvalue() == ""
    line.erase()
    assert stream.getvalue() == ""
    now = 102.0
    line.report(600.0, 36_000.0)
    line.report(601.0, 36_000.0)
    assert stream.getvalue().count("simulated") == 1
    line.erase()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_progress_text_has_time_rate_and_time_left() -> None:
    text = progress_text(600.0, 36_000.0, elapsed_s=2.0)
    assert text == "600 s of 36000 s simulated (2%), 300 times real time, at most 1 min 58 s left"
    assert re.search(r"at most 9 h 58 min left$", progress_text(1.0, 35_900.0, elapsed_s=1.0))
    assert progress_text(0.0, 10.0, elapsed_s=1.0) == "0 s of 10 s simulated (0%)"
    assert len(progress_text(259_199.0, 259_200.0, elapsed_s=999.0)) < 80


def test_dumb_terminal_shows_no_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert somebody_looks()
    monkeypatch.setenv("TERM", "dumb")
    assert not somebody_looks()
