"""Data files for flent: its format, its names, and flent itself where it is installed."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bentpipe import cli
from bentpipe.flent import rrul
from bentpipe.scenario import Scenario

OFFICE = """
name = "office"
duration = "20 s"
hosts = { server = {}, users = { count = 3 } }
gateways.terminal = {}
links.lan = { between = ["users", "terminal"], rate = "100 Mbit/s", delay = "1 ms" }
links.satellite = { between = ["terminal", "server"], rate = "10 Mbit/s", delay = "250 ms" }
mixes.office = { web = { share = 0.7, app = { kind = "web", page = "3gpp" } }, voice = 0.3 }
flows.office = { from = "users", to = "server", mix = "office" }
"""


def _flent(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    path = tmp_path / "out.flent.gz"
    assert cli.execute(["run", *arguments, "--flent", str(path)]) == 0
    document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return document


@pytest.fixture(scope="module")
def rrul_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flent") / "rrul.flent.gz"
    assert cli.execute(["run", "geo-consumer", "--rrul", "--flent", str(path)]) == 0
    return path


def test_flent_file_without_gz_suffix_is_uncompressed(tmp_path: Path) -> None:
    """flent unpacks by the name."""
    packed, plain = tmp_path / "out.flent.gz", tmp_path / "out.flent"
    command = ["run", "geo-consumer", "--set", "duration=5 s", "--set", "ip=v6", "--flent"]
    for path in (packed, plain):
        assert cli.execute([*command, str(path)]) == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert json.loads(plain.read_text())["metadata"]["IP_VERSION"] == 6


def test_rrul_file_has_flents_series_of_equal_length(rrul_file: Path) -> None:
    document = json.loads(gzip.decompress(rrul_file.read_bytes()))
    assert document["version"] == 4
    assert document["metadata"]["NAME"] == "rrul"
    names = {
        f"TCP {way} {mark}" for way in ("upload", "download") for mark in ("BE", "BK", "CS5", "EF")
    }
    pings = {f"Ping (ms) {kind}" for kind in ("ICMP", "UDP BE", "UDP BK", "UDP EF")}
    sums = {"Ping (ms) avg", "TCP totals"}
    sums |= {f"TCP {way} {what}" for way in ("upload", "download") for what in ("avg", "sum")}
    assert document["results"].keys() == names | pings | sums
    assert document["raw_values"].keys() == names | pings
    steps = len(document["x_values"])
    assert all(len(values) == steps for values in document["results"].values())
    assert document["x_values"] == sorted(document["x_values"])
    # The TCP flows together get the link's rate; no echo is faster than the propagation delay.
    totals = [each for each in document["results"]["TCP download sum"] if each is not None]
    assert 0.5 * 30.0 < max(totals) < 1000.0
    echoes = [each for name in pings for each in document["results"][name] if each is not None]
    assert min(echoes) > 560.0


def test_equal_runs_write_equal_flent_files(rrul_file: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.flent.gz"
    assert cli.execute(["run", "geo-consumer", "--rrul", "--flent", str(again)]) == 0
    assert again.read_bytes() == rrul_file.read_bytes()


def test_flent_file_has_a_series_per_flow(tmp_path: Path) -> None:
    file = tmp_path / "office.toml"
    file.write_text(OFFICE)
    document = _flent(tmp_path, str(file))
    names = document["results"].keys()
    assert {f"TCP download::office-{number}" for number in (1, 2, 3)} <= names
    assert document["metadata"]["NAME"] == "rrul_be_nflows"


def test_rrul_replaces_application_mixes_and_counted_hosts(tmp_path: Path) -> None:
    file = tmp_path / "office.toml"
    file.write_text(OFFICE)
    resolved = rrul(Scenario.find(file)).resolved()
    flows = {flow["name"]: flow for flow in resolved["flows"]}
    assert len(flows) == 12
    assert {flow["app"]["kind"] for flow in flows.values()} == {"bulk", "ping"}
    assert all((flow["from"], flow["to"]) == ("users-1", "server") for flow in flows.values())


def test_flent_loads_and_plots_the_file(rrul_file: Path, tmp_path: Path) -> None:
    program = shutil.which("flent")
    if program is None:
        pytest.skip("optional: flent is not installed")
    for plot in ("all_scaled", "ping_cdf", "totals"):
        image = tmp_path / f"{plot}.png"
        command = [program, str(rrul_file), "-p", plot, "-o", str(image)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert image.stat().st_size > 1000, done.stderr
