"""bentpipe and Linux's TCP in `emulate`: fixed windows (docs/validation/linux.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

import bentpipe
from bentpipe.scenario import Scenario

# Window rule, bit/s, one way in ms, queue in packets, receive_buffer in bytes, whether windows are
# scaled, whether there are timestamps; bytes that Linux 6.18.44 delivered in 10 s. In the first
# nine the rule was found.
WINDOWS = [
    ("cubic", 2_500_000, 146, 60, 24_946, False, True, 732_688),
    ("reno", 3_900_000, 35, 22, 22_835, False, True, 2_629_568),
    ("cubic", 2_400_000, 139, 55, 10_202, False, True, 293_944),
    ("cubic", 38_900_000, 143, 927, 20_037, False, False, 592_760),
    ("cubic", 14_600_000, 55, 133, 21_975, False, True, 1_778_144),
    ("cubic", 2_300_000, 270, 103, 13_094, True, False, 172_280),
    ("cubic", 14_800_000, 68, 167, 12_892, True, True, 715_312),
    ("cubic", 5_100_000, 30, 25, 9_979, True, False, 1_073_100),
    ("reno", 10_500_000, 58, 101, 51_597, True, True, 4_031_232),
    ("reno", 36_100_000, 21, 126, 9_201, False, False, 1_591_400),
    ("reno", 17_900_000, 278, 829, 14_508, False, True, 218_648),
    ("cubic", 26_500_000, 103, 454, 125_674, True, False, 5_560_288),
    ("reno", 39_300_000, 53, 347, 14_824, True, True, 1_191_704),
    ("cubic", 7_400_000, 66, 81, 19_608, False, True, 1_239_488),
]


@pytest.mark.parametrize("cell", WINDOWS, ids=lambda cell: "-".join(map(str, cell[:5])))
def test_window_limited_delivery_matches_linux(
    cell: tuple[str, int, int, int, int, bool, bool, int],
) -> None:
    control, rate, delay, queue, size, scaled, stamped, delivered = cell
    receiver = f'receive_buffer = "{size} B"\nwindow_scaling = {str(scaled).lower()}'
    result = _run(control, rate, delay, queue, receiver, stamped, 'kind = "bulk"', 10)
    assert result.flows[0].bytes_delivered == pytest.approx(delivered, rel=0.01)


def test_send_buffer_grows_between_transfers() -> None:
    """Polling for any of many connections checks the send buffer; without that, it took 3.76 s."""
    transfers = 'kind = "bulk", size = "112590 B", transfers = 4, pause = "300 ms"'
    result = _run("reno", 17_600_000, 161, 141, "", True, transfers, 22)
    assert result.flows[0].finish_s == pytest.approx(3.488, rel=0.005)


def _run(
    control: str,
    rate: int,
    delay: int,
    queue: int,
    receiver: str,
    stamped: bool,
    application: str,
    seconds: int,
) -> bentpipe.results.Summary:
    tcp = f"""
profile = "linux"
congestion_control = "{control}"
timestamps = {str(stamped).lower()}
"""
    text = f"""
name = "linux-windows"
duration = "{seconds} s"
randomness.host_timing = false
[hosts.a.tcp]{tcp}
[hosts.b.tcp]{tcp}{receiver}
[links.path]
between = ["a", "b"]
rate = "{rate} bit/s"
delay = "{delay} ms"
queue = {{ kind = "drop-tail", limit = "{queue} packets" }}
[flows.f]
from = "a"
to = "b"
app = {{ {application} }}
"""
    return bentpipe.run(Scenario(path=Path("linux-windows.toml"), text=text)).summary
