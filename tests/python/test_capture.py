"""tshark judges what `bentpipe run --pcap` writes."""

from __future__ import annotations

import json
import shutil
import subprocess
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bentpipe import _native

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

CHECKSUMS = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
BROKEN = "_ws.malformed or tcp.checksum.status == 0 or ip.checksum.status == 0"
REMARKS = (
    "tcp.analysis.retransmission or tcp.analysis.fast_retransmission"
    " or tcp.analysis.spurious_retransmission or tcp.analysis.out_of_order"
    " or tcp.analysis.lost_segment or tcp.analysis.ack_lost_segment"
)

NETWORK = """
name = "capture"
duration = "60 s"
hosts = { server = {}, client = {} }
flows.download = { from = "server", to = "client", app = { kind = "bulk", size = "300 kB" } }
[links.satellite]
between = ["server", "client"]
rate = "1.536 Mbit/s"
delay = "250 ms"
"""


def _capture(
    tmp_path: Path, overrides: list[tuple[str, str]], place: str
) -> tuple[Path, dict[str, Any]]:
    path = tmp_path / "link.pcapng"
    output = _native.run(
        "capture.toml", text=NETWORK, overrides=overrides, pcap=[(place, str(path))]
    )
    return path, json.loads(output.summary_json)


def _frames(path: Path, display_filter: str) -> list[str]:
    command = ["tshark", "-r", str(path), *CHECKSUMS, "-Y", display_filter]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("place", ["satellite", "satellite@client"])
@pytest.mark.parametrize("timestamps", ["true", "false"])
def test_tshark_finds_no_anomalies_in_a_loss_free_capture(
    tmp_path: Path, place: str, timestamps: str
) -> None:
    settings = [(f"hosts.{host}.tcp.timestamps", timestamps) for host in ("server", "client")]
    path, summary = _capture(tmp_path, settings, place)
    assert summary["flows"][0]["segments_retransmitted"] == 0
    assert _frames(path, BROKEN) == []
    assert _frames(path, REMARKS) == []
    forward, backward = summary["links"]
    frames = _frames(path, "tcp")
    assert len(frames) == forward["packets_delivered"] + backward["packets_delivered"]


@pytest.mark.parametrize("place", ["satellite", "satellite@client"])
def test_lossy_capture_is_well_formed_with_retransmissions(tmp_path: Path, place: str) -> None:
    losses = [
        ("links.satellite.forward.errors.packet_loss_rate", "0.03"),
        ("links.satellite.return.errors.packet_loss_rate", "0.01"),
    ]
    path, summary = _capture(tmp_path, losses, place)
    assert summary["flows"][0]["segments_retransmitted"] > 0
    assert _frames(path, BROKEN) == []
    assert _frames(path, REMARKS) != []


def test_captured_stream_contains_the_transferred_bytes(tmp_path: Path) -> None:
    losses = [("links.satellite.errors.packet_loss_rate", "0.02")]
    path, summary = _capture(tmp_path, losses, "satellite@client")
    assert summary["flows"][0]["bytes_delivered"] == 300_000
    command = ["tshark", "-r", str(path), "-q", "-z", "follow,tcp,raw,0"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = [line.strip() for line in done.stdout.splitlines()]
    payload = b"".join(bytes.fromhex(line) for line in lines if line and _is_hex(line))
    # tshark has put the stream together from what the client received, in order, exactly once.
    assert len(payload) == 300_000


def _is_hex(line: str) -> bool:
    return all(character in "0123456789abcdef" for character in line)


def test_capture_timestamps_are_monotonic_nanoseconds(tmp_path: Path) -> None:
    path, _ = _capture(tmp_path, [], "satellite")
    command = ["tshark", "-r", str(path), "-T", "fields", "-e", "frame.time_epoch"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    times = [Decimal(line) for line in done.stdout.split()]
    gaps = {later - earlier for earlier, later in pairwise(times)}
    assert min(gaps) >= 0
    # A 1500-byte packet takes 7.8125 ms at 1.536 Mbit/s: half a microsecond is not rounded away.
    assert Decimal("0.007812500") in gaps


def test_return_link_capture_has_the_transmitted_bytes(tmp_path: Path) -> None:
    # Slow enough that acknowledgments are compacted: outer header, three bytes, inner packet.
    parts = [("links.satellite.return", '{ rate = "9.6 kbit/s", acks = { kind = "compaction" } }')]
    path, summary = _capture(tmp_path, parts, "satellite@server")
    link = summary["links"][1]
    assert link["name"] == "satellite.return"
    assert _frames(path, BROKEN) == []
    received = "ip.dst == 10.0.0.1 and ip.src == 10.0.0.2"
    assert len(_frames(path, received)) == link["packets_delivered"]
    compacted = link["counters"]["total"]["acks_compacted"]
    assert compacted > 0
    # 253: for experiments; what is not compacted is IP in IP, which tshark sees through.
    assert len(_frames(path, f"{received} and ip.proto == 253")) == compacted
    inside = len(_frames(path, f"{received} and ip.proto == 4 and tcp"))
    assert inside == link["packets_delivered"] - compacted


def test_capture_with_header_compression_has_uncompressed_packets(tmp_path: Path) -> None:
    parts = [("links.satellite.compression", "rfc1144")]
    path, summary = _capture(tmp_path, parts, "satellite")
    assert _frames(path, f"{BROKEN} or {REMARKS}") == []
    packets = sum(link["packets_delivered"] for link in summary["links"])
    assert len(_frames(path, "tcp")) == packets


@pytest.mark.parametrize("ip", ["v4", "v6"])
def test_longest_tunnel_packet_fits_the_ip_length_field(tmp_path: Path, ip: str) -> None:
    # A random size may be as large as it likes: the network says what a datagram holds at most.
    source = '{ kind = "packets", size = "pareto(60 kB, 1.1)", interval = "200 ms" }'
    of_links = [("links.satellite.tunnel", "true")]
    overrides = [("ip", f'"{ip}"'), *of_links, ("flows.download.app", source)]
    path, _ = _capture(tmp_path, overrides, "satellite")
    longest = max(int(frame) for frame in _lengths(path))
    assert longest == 65_535
    assert _frames(path, BROKEN) == []


def _lengths(path: Path) -> list[str]:
    command = ["tshark", "-r", str(path), "-T", "fields", "-e", "frame.len"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.split()
