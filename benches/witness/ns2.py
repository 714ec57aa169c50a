"""ns-2, for witnesses with scripts of their own.

The module finds and runs ns-2, and returns the corresponding settings of bentpipe.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SEGMENT_BYTES = 1448
# Loss recovery by ns-2's agent.
RECOVERIES = {"Reno": "reno", "Newreno": "newreno", "Sack1": "sack"}
# Limit of a queue that never drops.
LONG_QUEUE_PACKETS = 100_000


def available() -> bool:
    """Return whether ns-2 is installed."""
    return shutil.which("ns") is not None


def version() -> str:
    """Return the version of the installed ns-2, such as "2.35"."""
    finished = subprocess.run(
        ["ns"], input="puts [ns-version]\n", capture_output=True, text=True, check=True
    )
    return finished.stdout.strip()


def run(script: Path, options: Mapping[str, object]) -> str:
    """Run a script with pairs of a key and a value, and return its output.

    Raises
    ------
    RuntimeError
        If ns-2 failed; the message is ns-2's.
    """
    # Fixed-point: ns-2 does not read every exponent form.
    arguments = [
        f"{part:.15f}" if isinstance(part, float) else str(part)
        for option in options.items()
        for part in option
    ]
    finished = subprocess.run(
        ["ns", str(script), *arguments], capture_output=True, text=True, check=False
    )
    if finished.returncode != 0:
        raise RuntimeError(f"ns-2 failed: {finished.stderr.strip()}")
    return finished.stdout


def sender(
    *,
    recovery: str,
    initial_window: int,
    threshold_segments: int,
    minimum_rto_s: float,
    congestion_control: str = "reno",
) -> dict[str, Any]:
    """Return the TCP settings closest to an ns-2 agent's."""
    sack = recovery == "sack"
    tcp: dict[str, Any] = {
        "congestion_control": congestion_control,
        "recovery": recovery,
        "sack": sack,
        "slow_start": "standard",
        "congestion_avoidance": "per-acknowledgment",
        "window_validation": False,
        "idle_restart": "off",
        "initial_window": f"{initial_window} segments",
        "initial_slow_start_threshold": f"{threshold_segments} segments",
        "mss": f"{SEGMENT_BYTES} B",
        "nagle": False,
        "send_buffer": "64 MiB",
        "rto_rule": "rfc6298",
        "initial_rto": "3 s",
        "minimum_rto": f"{minimum_rto_s} s",
    }
    if sack:
        later = ("rack", "proportional_rate_reduction", "tail_loss_probe", "f_rto", "undo")
        tcp |= dict.fromkeys(later, False)
    return tcp


def receiver(*, sack: bool, delayed_ack_s: float, window_segments: int) -> dict[str, Any]:
    """Return the TCP settings closest to an ns-2 sink's."""
    return {
        "mss": f"{SEGMENT_BYTES} B",
        "sack": sack,
        "receive_buffer": f"{window_segments * SEGMENT_BYTES} B",
        "delayed_ack": f"{delayed_ack_s * 1e3:.0f} ms" if delayed_ack_s > 0 else "off",
    }
