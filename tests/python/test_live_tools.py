"""Linux's own tools as witnesses over `emulate`: ping and iperf3's UDP."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from bentpipe.cli import execute

from .live import live

RATE_BPS = 2_000_000


def _file(folder: Path, *, forward: str = "") -> Path:
    file = folder / "tools.toml"
    file.write_text(
        'name = "tools"\nduration = "20 s"\nhosts = { server = {}, client = {} }\n'
        f'links.l.between = ["client", "server"]\nlinks.l.rate = "{RATE_BPS} bit/s"\n'
        f'links.l.delay = "100 ms"\n{forward}\n'
        'flows.f = { from = "server", to = "client", app = { kind = "bulk" } }\n',
        encoding="utf-8",
    )
    return file


@live
@pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")
def test_ping_measures_the_round_trip(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["ping", "-c", "5", "-i", "0.2", "server"]
    assert execute(["emulate", str(_file(tmp_path)), "--shell", "client", "--", *command]) == 0
    out = capfd.readouterr().out
    times = [float(each) for each in re.findall(r"time=([\d.]+) ms", out)]
    assert len(times) == 5, out
    # 84 bytes at 2 Mbit/s take a third of a millisecond each way; nothing is sooner.
    assert min(times) >= 200.6
    assert min(times) < 230.0


def _iperf(folder: Path, file: Path, *options: str) -> dict[str, float]:
    result = folder / "iperf.json"
    client = (
        "for i in 1 2 3 4 5 6 7 8 9 10; do "
        f"iperf3 -u -c server -l 1000 -t 5 {' '.join(options)} --json > {result} && exit 0; "
        "sleep 0.3; done; exit 1"
    )
    arguments = ["emulate", str(file), "--serve", "server=iperf3 -s -1", "--shell", "client"]
    assert execute([*arguments, "--", "sh", "-c", client]) == 0
    end: dict[str, float] = json.loads(result.read_text())["end"]["sum_received"]
    return end


@live
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_iperf3_udp_rate_is_the_link_rate_less_headers(tmp_path: Path) -> None:
    got = _iperf(tmp_path, _file(tmp_path), "-b", "4M")
    # Twice the rate is offered: what comes through is the link's rate, less 28 bytes in 1,028;
    # iperf3 counts until it has heard the end, a queue and a round trip later.
    share = got["bits_per_second"] / (RATE_BPS * 1000 / 1028)
    assert 0.85 < share < 1.02, got
    assert got["lost_percent"] > 30.0


@live
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_iperf3_reports_the_links_losses(tmp_path: Path) -> None:
    lossy = "links.l.forward.errors.packet_loss_rate = 0.05"
    got = _iperf(tmp_path, _file(tmp_path, forward=lossy), "-b", "1.6M")
    # A thousand datagrams: a standard deviation is 0.7%.
    assert got["packets"] == pytest.approx(1000, abs=20)
    assert 2.2 < got["lost_percent"] < 7.8, got
