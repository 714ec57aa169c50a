"""Response times of a client through a split gateway under attack.

    python benches/witness/gateways.py attacks

The client opens a connection for each of 300 requests, one after the other. The attacks are those
of tests/python/test_gateway_attacks.py, sent as fast as one process can. Root is needed.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from python.test_gateway_attacks import KINDS, response_times  # noqa: E402


def main(count: int = 300) -> None:
    """Print the median and the 99th percentile of each attack."""
    for kind in (None, *KINDS):
        with tempfile.TemporaryDirectory() as folder:
            begin = time.monotonic()
            times, sent = response_times(Path(folder), kind, count)
            rate = sent / (time.monotonic() - begin)
        times.sort()
        print(
            f"{kind or 'no attack'}: {statistics.median(times):.2f} ms, 99th percentile "
            f"{times[int(len(times) * 0.99) - 1]:.2f} ms, {sent} packets, {rate:,.0f} per second"
        )
