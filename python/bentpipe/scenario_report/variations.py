"""Variations of a scenario around its present values: rate, delay, losses, number of users."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bentpipe.groups import groups
from bentpipe.units import format_rate, format_seconds

if TYPE_CHECKING:
    from bentpipe.advice.remedies import Network
    from bentpipe.prediction.network import Direction
    from bentpipe.prediction.paths import FlowPath
    from bentpipe.results import Summary

_RATE_FACTORS: Final = (0.5, 0.75, 1.0, 1.5, 2.0)
_DELAY_FACTORS: Final = (0.1, 0.5, 1.0, 1.5)
_LOSS_FACTORS: Final = (0.0, 0.1, 1.0, 3.0, 10.0)
_USER_FACTORS: Final = (0.5, 1.0, 1.5, 2.0)
# Shares of lost packets where a link has no losses at present, and numbers of users where there is
# one.
_LOSSES: Final = (0.0, 1e-4, 1e-3, 1e-2)
_FEW_USERS: Final = (1, 2, 3, 4)
# Largest loss rate of a variation.
_MOST_LOST: Final = 0.3
# Share of the time from which a direction that is no bottleneck of the data is varied, too.
_MUCH_USED: Final = 0.8
# Positions of the values of a quick report among all: the smallest, the present and the largest.
_QUICK: Final = 3


@dataclass(frozen=True, kw_only=True)
class Value:
    """A value of a variation: a number, its words, and the settings that give it.

    The present value has no settings.
    """

    number: float
    words: str
    settings: tuple[tuple[str, str], ...]
    is_present: bool = False


@dataclass(frozen=True, kw_only=True)
class Variation:
    """A quantity of a scenario that is varied.

    `kind` is "rate", "delay", "losses" or "users"; `subject` names what is varied. A variation that
    is not possible has no values, and says why.
    """

    kind: str
    subject: str
    unit: str
    values: tuple[Value, ...] = ()
    why_not: str = ""

    @property
    def present(self) -> int:
        """The position of the present value."""
        return next(place for place, each in enumerate(self.values) if each.is_present)


def variations(network: Network, summary: Summary, *, quick: bool = False) -> list[Variation]:
    """Return the variations of a scenario; `summary` is a run of it."""
    paths = _by_data(network.paths, summary)
    made = [_users(network, paths)]
    if paths:
        narrow = paths[0].down_bottleneck
        rates = [_rate(network, narrow)]
        full = _fullest(paths, summary)
        if full is not None and network.key_of(full) != network.key_of(narrow):
            rates.append(_rate(network, full))
        made = [*rates, _delay(network, paths), _losses(network, paths[0]), *made]
    if not quick:
        return made
    return [_fewer(each) if len(each.values) > _QUICK else each for each in made]


def _fewer(variation: Variation) -> Variation:
    """Return the variation with its smallest, present and largest value."""
    places = sorted({0, variation.present, len(variation.values) - 1})
    return Variation(
        kind=variation.kind,
        subject=variation.subject,
        unit=variation.unit,
        values=tuple(variation.values[place] for place in places),
    )


def _by_data(paths: Sequence[FlowPath], summary: Summary) -> list[FlowPath]:
    """Return the paths, those first whose bottleneck the most data passes."""
    delivered = {flow.name: flow.bytes_delivered for flow in summary.flows}
    passed: Counter[str] = Counter()
    for path in paths:
        passed[path.down_bottleneck.name] += 1 + delivered[path.flow]
    return sorted(paths, key=lambda path: -passed[path.down_bottleneck.name])


def _fullest(paths: Sequence[FlowPath], summary: Summary) -> Direction | None:
    """Return the direction that is used most; None if none is used for most of the time."""
    used = {link.name: link.utilization for link in summary.links}
    on_paths = [each for path in paths for each in (*path.downlink, *path.uplink)]
    full = max(on_paths, key=lambda each: used[each.name])
    return full if used[full.name] >= _MUCH_USED else None


def _rate(network: Network, narrow: Direction) -> Variation:
    subject = f"rate of {_shown(network, narrow)}"
    here = network.settings_of(narrow)
    if here["changes"] is not None and here["changes"]["rate"] is not None:
        return Variation(
            kind="rate", subject=subject, unit="bit/s", why_not="the rate changes during the run"
        )
    key = _key(network, narrow, "rate")
    present_bps = here["rate_bps"]
    return Variation(
        kind="rate",
        subject=subject,
        unit="bit/s",
        values=tuple(
            Value(
                number=present_bps * factor,
                words=format_rate(present_bps * factor),
                settings=() if factor == 1.0 else ((key, f"{round(present_bps * factor)} bit/s"),),
                is_present=factor == 1.0,
            )
            for factor in _RATE_FACTORS
        ),
    )


def _delay(network: Network, paths: Sequence[FlowPath]) -> Variation:
    """Vary the delay of the longest link of each path, in both directions."""
    longest = _longest(paths[0].downlink)
    subject = f"delay of {_link(network, longest)}"
    varied: dict[str, Direction] = {}
    for path in paths:
        for way in (path.downlink, path.uplink):
            found = _longest(way)
            # The other way may be by another link, as by a modem.
            if 2.0 * found.delay_s >= longest.delay_s:
                varied.setdefault(network.key_of(found), found)
    keys = {_key(network, each, "delay", varied=varied): each for each in varied.values()}
    changing = [each for each in keys.values() if _delay_changes(network, each)]
    if changing:
        return Variation(
            kind="delay", subject=subject, unit="s", why_not="the delay changes during the run"
        )
    if longest.delay_s <= 0.0:
        return Variation(kind="delay", subject=subject, unit="s", why_not="no link has a delay")
    delays = {key: network.settings_of(each)["delay_s"] for key, each in keys.items()}
    present_s = network.settings_of(longest)["delay_s"]
    return Variation(
        kind="delay",
        subject=subject,
        unit="s",
        values=tuple(
            Value(
                number=present_s * factor,
                words=format_seconds(present_s * factor),
                settings=()
                if factor == 1.0
                else tuple(
                    (key, f"{round(1e9 * delay_s * factor)} ns") for key, delay_s in delays.items()
                ),
                is_present=factor == 1.0,
            )
            for factor in _DELAY_FACTORS
        ),
    )


def _key(network: Network, direction: Direction, what: str, *, varied: Collection[str] = ()) -> str:
    """Return the key that sets a quantity of a direction, without effect on directions not varied.

    `varied` are the keys of all directions that are varied. A key of the link that both directions
    overrule is refused.
    """
    own = network.key_of(direction)
    link, _, way = own.rpartition(".")
    other = f"{link}.{'return' if way == 'forward' else 'forward'}"
    if f"{own}.{what}" in network.written or f"{link}.{what}" not in network.written:
        return f"{own}.{what}"
    if other in varied or f"{other}.{what}" in network.written:
        return f"{link}.{what}"
    return f"{own}.{what}"


def _delay_changes(network: Network, direction: Direction) -> bool:
    changes = network.settings_of(direction)["changes"]
    return changes is not None and changes["delay"] is not None


def _longest(way: Sequence[Direction]) -> Direction:
    return max(way, key=lambda each: each.delay_s)


def _error_rates(network: Network, direction: Direction) -> tuple[float, float]:
    errors = network.settings_of(direction)["errors"]
    return errors["packet_loss_rate"], errors["bit_error_rate"]


def _losses(network: Network, path: FlowPath) -> Variation:
    lossy = max(path.downlink, key=lambda each: (_error_rates(network, each), each.delay_s))
    errors = network.settings_of(lossy)["errors"]
    key = _key(network, lossy, "errors")
    what = "bit_error_rate" if errors["bit_error_rate"] > 0.0 else "packet_loss_rate"
    present = float(errors[what])
    subject = (
        f"{'bit errors' if what == 'bit_error_rate' else 'losses'} of {_shown(network, lossy)}"
    )
    rates = list(_LOSSES)
    if present > 0.0:
        others = (present * factor for factor in _LOSS_FACTORS)
        rates = sorted({present, *(rate for rate in others if rate <= _MOST_LOST)})
    return Variation(
        kind="losses",
        subject=subject,
        unit="",
        values=tuple(
            Value(
                number=rate,
                words=_share(rate, what),
                settings=() if rate == present else ((key, _errors(errors, what, rate)),),
                is_present=rate == present,
            )
            for rate in rates
        ),
    )


def _share(rate: float, what: str) -> str:
    if rate == 0.0:
        return "none"
    return f"{rate:.3g}" if what == "bit_error_rate" else f"{100.0 * rate:.3g}%"


def _errors(errors: Mapping[str, Any], what: str, rate: float) -> str:
    """Return the table of errors with another rate: what is lost besides it stays."""
    kept = {
        key: value
        for key, value in errors.items()
        if value not in (None, [], 0.0) and key not in ("bit_error_rate", "packet_loss_rate")
    }
    if rate == 0.0:
        kept = {key: value for key, value in kept.items() if key == "lost_packets"}
    told = ", ".join(f"{key} = {value}" for key, value in {what: rate, **kept}.items())
    return f"{{ {told} }}"


def _users(network: Network, paths: Sequence[FlowPath]) -> Variation:
    """Vary the counts of hosts and gateways together; of flows between single hosts, theirs."""
    nodes = {node["name"]: node for node in network.resolved["nodes"]}
    counted = {
        name: len(places)
        for name, places in groups(list(nodes)).items()
        if len(places) > 1 and name in network.tables
    }
    hosts = {name: n for name, n in counted.items() if nodes[f"{name}-1"]["kind"] == "host"}
    if hosts:
        keys = {
            f"{'hosts' if name in hosts else 'gateways'}.{name}.count": n
            for name, n in counted.items()
        }
        most = max(hosts, key=hosts.__getitem__)
        others = [name for name in hosts if name != most]
        subject = f"count of {most}" + (f" ({_listed(others)} in proportion)" if others else "")
        return _counts(subject, keys, counted[most])
    if not paths:
        return Variation(
            kind="users", subject="number of users", unit="", why_not="no host has a count"
        )
    members = Counter(flow["table"] for flow in network.resolved["flows"])
    own = next(each for each in network.resolved["flows"] if each["name"] == paths[0].flow)
    table = own["table"]
    subject = f"number of {table} flows at a time"
    return _counts(subject, {f"flows.{table}.count": members[table]}, members[table])


def _counts(subject: str, keys: Mapping[str, int], present: int) -> Variation:
    if present == 1:
        factors: list[float] = [float(number) for number in _FEW_USERS]
    else:
        factors = list(_USER_FACTORS)
    values = []
    for factor in factors:
        numbers = {key: max(1, math.floor(number * factor + 0.5)) for key, number in keys.items()}
        number = max(1, math.floor(present * factor + 0.5))
        values.append(
            Value(
                number=number,
                words=f"{number:,}",
                settings=()
                if factor == 1.0
                else tuple((key, str(each)) for key, each in numbers.items()),
                is_present=factor == 1.0,
            )
        )
    return Variation(kind="users", subject=subject, unit="", values=tuple(values))


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _link(network: Network, direction: Direction) -> str:
    return network.table_of(direction.name.rpartition(".")[0])


def _shown(network: Network, direction: Direction) -> str:
    """Return a direction as it is named in results, a counted link by its table."""
    return f"{_link(network, direction)}.{direction.name.rpartition('.')[2]}"
