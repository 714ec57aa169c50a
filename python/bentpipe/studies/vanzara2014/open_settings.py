"""Search over what vanzara2014 leaves open, for the 18 goodputs of its text.

Open are loss recovery, the initial slow-start threshold, the cut after a loss (the text describes a
quarter, ns-2's TCP-Linux halves), the variant of Westwood (the reference is the rule of 2001, the
tool has Westwood+), and what CC is fed. These are varied jointly. Others are varied alone, and
together with CC of both directions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from bentpipe.studies.open_settings import OpenSettings, Published, grid
from bentpipe.studies.open_settings import Setting as Row
from bentpipe.studies.vanzara2014.cells import CAPACITY_BPS, LINK_BPS, MAIN, Setting, Transfer
from bentpipe.studies.vanzara2014.settings import PUBLISHED

if TYPE_CHECKING:
    from bentpipe.results import RunResult

_Options = Mapping[str, Any]

# Each factor's levels, the main setting's first: a name, and the parameters that differ from it.
FACTORS: Final[Mapping[str, Mapping[str, _Options]]] = {
    "recovery": {
        "SACK and RACK": {},
        "SACK": {"rack": False},
        "FACK": {"recovery": "fack"},
        "PRR": {"proportional_rate_reduction": True},
    },
    "threshold": {"one product": {}, "none": {"threshold": "none"}},
    "Hybla's cut": {"quarter": {}, "half": {"after_loss": "half", "after_timeout": "one-segment"}},
    "Westwood": {
        "Westwood+, at least half": {},
        "Westwood+": {"westwood_after_loss": "pipe"},
        "at least half, last sample": {"westwood_filter": "last-sample"},
        "last sample": {"westwood_after_loss": "pipe", "westwood_filter": "last-sample"},
        "2001": {"westwood_rule": "westwood-2001", "westwood_after_loss": "pipe"},
    },
    "CC": {"100 Mbit/s": {}, "200 Mbit/s": {"channel_capacity_bps": 2 * LINK_BPS}},
}
# Varied alone, and together with CC.
OTHERS: Final[Mapping[str, _Options]] = {
    "NewReno": {"recovery": "newreno"},
    "sender of TCP-Linux": {"profile": "ns-2-tcp-linux"},
    "queue of 50 packets": {"queue_packets": 50},
    "queue of 500 packets": {"queue_packets": 500},
    "queue of 5000 packets": {"queue_packets": 5000},
    "delayed ACKs": {"delayed_ack_ms": 200},
    "threshold estimated": {"threshold": "estimate"},
    "threshold of 1000 packets": {"threshold": "1000"},
    "BWE filtered": {"bandwidth_filter": "westwood"},
    # The link's rate of payload; bytes per second taken for bits per second.
    "CC of 96.5 Mbit/s": {"channel_capacity_bps": round(CAPACITY_BPS)},
    "CC of 800 Mbit/s": {"channel_capacity_bps": 8 * LINK_BPS},
}
OTHER: Final = "other"
NO_OTHER: Final = "-"


def _rows() -> Sequence[Row]:
    """Return the settings: the factors jointly, then each other departure with both CCs."""
    joint = grid(**{name: tuple(levels) for name, levels in FACTORS.items()})
    main = {name: next(iter(levels)) for name, levels in FACTORS.items()}
    found: list[Row] = [{**each, OTHER: NO_OTHER} for each in joint]
    for other, options in OTHERS.items():
        capacities = tuple(FACTORS["CC"])
        if "channel_capacity_bps" in options:
            capacities = capacities[:1]
        found += [{**main, "CC": capacity, OTHER: other} for capacity in capacities]
    return found


def setting_of(row: Row) -> Setting:
    """Return the setting that a row names."""
    options: dict[str, Any] = {}
    for name, levels in FACTORS.items():
        options.update(levels[str(row[name])])
    if row[OTHER] != NO_OTHER:
        options.update(OTHERS[str(row[OTHER])])
    return replace(MAIN, **options)


def departures(row: Row) -> list[str]:
    """Return what differs from the main setting, by factor."""
    found = [
        f"{name}: {row[name]}"
        for name, levels in FACTORS.items()
        if row[name] != next(iter(levels))
    ]
    if row[OTHER] != NO_OTHER:
        found.append(str(row[OTHER]))
    return found


def cells(row: Row) -> list[Transfer]:
    """Return the runs of a setting: the first seed of each rule and error rate."""
    setting = setting_of(row)
    return list(dict.fromkeys(each.transfer(setting) for each in PUBLISHED))


def measure(row: Row, outcomes: Mapping[Transfer, RunResult]) -> dict[str, float]:
    """Return the goodputs of the text as measured with a setting, in Mbit/s."""
    setting = setting_of(row)
    return {each.label: each.measured_mbps(outcomes[each.transfer(setting)]) for each in PUBLISHED}


SEARCH: Final = OpenSettings(
    settings=_rows(),
    published={
        each.label: Published(columns=(each.label,), expect=each.expect, tolerance=each.tolerance)
        for each in PUBLISHED
    },
    cells=cells,
    measure=measure,
)
