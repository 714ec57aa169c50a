"""The files that an operator installs: the systemd unit and the dashboard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bentpipe.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "packaging" / "debian" / "bentpipe-gateway.service"
CONFIGURATION = ROOT / "packaging" / "debian" / "gateway.conf"
DASHBOARD = ROOT / "packaging" / "grafana" / "bentpipe-gateway.json"
METRICS = ROOT / "crates" / "live" / "src" / "gateway" / "metrics.rs"


def settings(name: str) -> list[str]:
    """Return the values of a setting of the unit."""
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text("utf-8"), re.MULTILINE)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_unit_is_confined() -> None:
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(UNIT)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.search(r"Overall exposure level for .*: (\d+\.\d)", done.stdout)
    assert found is not None, done.stderr
    assert float(found[1]) < 2.0
    assert settings("CapabilityBoundingSet") == ["CAP_NET_ADMIN"]
    assert settings("AmbientCapabilities") == ["CAP_NET_ADMIN"]


def test_the_unit_starts_what_there_is() -> None:
    [start] = settings("ExecStart")
    known = {each.option for each in COMMANDS["gateway"].parameters.values()}
    assert set(re.findall(r"--\w+", start)) <= known
    variables = {*re.findall(r"\$\{?([A-Z]+)", start)}
    given = re.findall(r"^([A-Z]+)=", CONFIGURATION.read_text("utf-8"), re.MULTILINE)
    assert variables == {*given}
    # systemd kills what takes longer to end.
    assert int(settings("TimeoutStopSec")[0]) >= 80


def test_the_dashboard_shows_metrics_that_there_are() -> None:
    text = DASHBOARD.read_text("utf-8")
    board = json.loads(text)
    panels = [each for each in board["panels"] if each["type"] == "timeseries"]
    assert len(panels) >= 12
    assert all(each["targets"] for each in panels)
    known = set(re.findall(r'"(bentpipe_gateway_\w+)"', METRICS.read_text("utf-8")))
    used = set(re.findall(r"bentpipe_gateway_\w+", text))
    assert used
    for name in used:
        assert re.sub(r"_(total|bucket|sum|count)$", "", name) in known, name
    # Whatever is measured is on the dashboard.
    shown = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in used}
    assert known - shown <= {"bentpipe_gateway_packets_in", "bentpipe_gateway_draining"}
