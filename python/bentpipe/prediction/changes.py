"""What formulas make of a direction that changes with time: averages, and a line that says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Table = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Averages:
    """A direction of a link as it is on average over a run, outages and fades left out."""

    rate_bps: float
    delay_s: float
    bit_error_rate: float
    packet_loss_rate: float


def averages(settings: Table) -> Averages:
    """Return the averages of a resolved scenario's direction."""
    changes = settings["changes"] or {}
    rate, delay, losses = (changes.get(key) for key in ("rate", "delay", "losses"))
    errors = settings["errors"]
    bits, packets = errors["bit_error_rate"], errors["packet_loss_rate"]
    if losses is not None:
        # Both lose: a packet that survives the one may meet the other.
        bits = 1.0 - (1.0 - bits) * (1.0 - losses["mean_bit_error_rate"])
        packets = 1.0 - (1.0 - packets) * (1.0 - losses["mean_packet_loss_rate"])
    # A packet with a wrong checksum is lost to its connection.
    packets = 1.0 - (1.0 - packets) * (1.0 - changes.get("corruption", 0.0))
    return Averages(
        # A link that is always down has no time per packet: the slowest that a file can say.
        rate_bps=settings["rate_bps"] if rate is None else max(1.0, rate["mean_bps"]),
        delay_s=settings["delay_s"] if delay is None else delay["mean_s"],
        bit_error_rate=bits,
        packet_loss_rate=packets,
    )


def best(settings: Table) -> tuple[float, float]:
    """Return the highest rate that a direction ever has, bit/s, and the least delay, seconds."""
    changes = settings["changes"] or {}
    rate, delay = changes.get("rate"), changes.get("delay")
    # Before the first step, it is as without any.
    rates = [settings["rate_bps"], None if rate is None else rate.get("most_bps", rate["mean_bps"])]
    delays = [settings["delay_s"], None if delay is None else delay["least_s"]]
    return (
        max([1.0, *(each for each in rates if each is not None)]),
        min([each for each in delays if each is not None], default=0.0),
    )


def changing(settings: Table) -> tuple[str, ...]:
    """Return what a direction does that no formula knows of, in words."""
    changes = settings["changes"]
    if changes is None:
        return ()
    words = {
        "rate": "a rate that changes (its average is taken)",
        "delay": "a delay that changes (its average is taken)",
        "losses": "losses that change (their average is taken)",
        "outages": "outages",
        "fading": "fading",
        "duplication": "duplication",
        "reordering": "reordering",
    }
    return tuple(text for key, text in words.items() if changes[key])
