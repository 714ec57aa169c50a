"""A capture that finds no room, in real time: what was measured nobody can have again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bentpipe
from bentpipe.scenario import Scenario

from .live import live
from .networks import short

pytestmark = live

CUT = "cannot be written: No space left on device (os error 28): the capture ends there"
# Enough for a few hundred full packets: the transfer has more.
SMALL = "200k"
# A note of its own on a busy machine.
TOO_SLOW = "bentpipe: this machine was too slow"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "short.toml"
    file.write_text(Scenario.of(short()).text or "", encoding="utf-8")
    return file


def _emulated(scenario: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Emulate in a folder of its own on a disk with little room, in a namespace of its own."""
    disk = scenario.parent / "disk"
    disk.mkdir()
    alone = ["--mount"] if os.geteuid() == 0 else ["--mount", "--user", "--map-root-user"]
    script = f'mount -t tmpfs -o size={SMALL} none "$0" && cd "$0" && exec "$@"'
    command = [sys.executable, "-m", "bentpipe", "emulate", str(scenario), "--pcap", "satellite"]
    return subprocess.run(
        ["unshare", *alone, "sh", "-c", script, str(disk), *command, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def _complaints(said: subprocess.CompletedProcess[str]) -> list[str]:
    """Lines on the standard error, without the note on a machine that was too slow."""
    return [line for line in said.stderr.splitlines() if not line.startswith(TOO_SLOW)]


def test_full_disk_truncates_the_capture_and_keeps_the_result(tmp_path: Path) -> None:
    capture = tmp_path / "satellite.pcapng"
    capture.symlink_to("/dev/full")
    result = bentpipe.emulate(short(), pcap=[("satellite", capture)])
    assert result.flow().bytes_delivered == 1_000_000
    assert [note for note in result.notes if CUT in note] == [f"{capture}: {CUT}"]


def test_truncated_capture_is_reported_in_one_line(scenario: Path) -> None:
    said = _emulated(scenario, "--json")
    # The capture lacks what was asked for.
    assert said.returncode == 1
    assert _complaints(said) == [f"bentpipe: satellite.pcapng: {CUT}"]
    told = json.loads(said.stdout)
    assert told["flows"][0]["bytes_delivered"] == 1_000_000
    assert f"satellite.pcapng: {CUT}" in told["notes"]


def test_unwritable_result_is_printed_instead(scenario: Path) -> None:
    said = _emulated(scenario, "--json", "--out", "results")
    # The folder lacks what was asked for.
    assert said.returncode == 1
    assert json.loads(said.stdout)["flows"][0]["bytes_delivered"] == 1_000_000
    cut, unwritten = _complaints(said)
    assert cut == f"bentpipe: results/satellite.pcapng: {CUT}"
    assert "results/" in unwritten
    assert "no space left on device" in unwritten.lower()
