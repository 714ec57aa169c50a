"""Shares of several resources: each use of one gets no more than the resource's level allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

# Levels that differ by rounding are one; so are a resource and the demand for it.
_ALIKE: Final = 1e-12
_FULL: Final = 1e-9
# Each round settles a level at the least where every use counts alike; others close in on theirs.
# So many times all are looked at at once, which nearly always does; then no two always together.
_ROUNDS_AT_ONCE: Final = 30
_ROUNDS: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class Uses:
    """Who uses what: one entry for each user and resource, arrays of one length.

    `cost` is what a unit of the user's rate takes of the resource, `weight` what a unit of the
    resource's level allows the use to take. Where both are the same, a level is a rate, and all
    users of a resource get the same.
    """

    user: Indices
    resource: Indices
    cost: Floats
    weight: Floats


def levels(uses: Uses, *, free: Floats, wanted: Floats) -> tuple[Floats, Floats]:
    """Return each user's rate, and for each use the rate that its resource allows the user.

    Every user is held back by what it wants, or by a resource that is full and of which none of
    the others' uses is larger, measured by their weights: max-min fairness where weights are costs
    (Bertsekas and Gallager, Data Networks, section 6.5.2), and bottleneck max fairness otherwise
    (T. Bonald and J. Roberts, Multi-resource fairness, SIGMETRICS 2015).

    Parameters
    ----------
    uses
        Who uses what.
    free
        How much of each resource there is.
    wanted
        The rate that each user would have by itself.
    """
    caps = np.full(len(uses.user), np.inf)
    every = np.ones(len(caps), dtype=bool)
    bits = max(1, int(len(free) - 1).bit_length())
    settled_for = 0
    for turn in range(_ROUNDS):
        at_once = turn < _ROUNDS_AT_ONCE
        # Two resources that hold the same users back would each leave it to the other, again and
        # again. Any two differ in a digit of their numbers.
        digit, value = divmod(turn % (2 * bits), 2)
        looked_at = every if at_once else (uses.resource >> digit) % 2 == value
        # What a use would take if its own resource had room.
        demand = uses.cost * np.minimum(wanted[uses.user], _others(uses.user, caps, len(wanted)))
        level = _water_level(uses, demand, free)
        found = uses.weight * level[uses.resource] / uses.cost
        found = np.where(looked_at, found, caps)
        settled = bool(np.isclose(found, caps, rtol=_ALIKE, atol=0.0).all())
        caps = found
        settled_for = settled_for + 1 if settled else 0
        if settled_for >= (1 if at_once else 2 * bits):
            break
    rates = wanted.copy()
    np.minimum.at(rates, uses.user, caps)
    return rates, caps


def _others(user: Indices, caps: Floats, count: int) -> Floats:
    """Return, for each use, the lowest cap of its user's other uses."""
    order = np.lexsort((caps, user))
    sorted_user = user[order]
    is_first = np.ones(len(user), dtype=bool)
    is_first[1:] = sorted_user[1:] != sorted_user[:-1]
    is_second = np.zeros(len(user), dtype=bool)
    is_second[1:] = is_first[:-1] & ~is_first[1:]
    lowest, second = np.full(count, np.inf), np.full(count, np.inf)
    lowest[sorted_user[is_first]] = caps[order][is_first]
    second[sorted_user[is_second]] = caps[order][is_second]
    found = lowest[user]
    first_uses = order[is_first]
    found[first_uses] = second[user[first_uses]]
    return found


def _water_level(uses: Uses, demand: Floats, free: Floats) -> Floats:
    """Return the level of each resource at which it is full; infinite where it never is.

    Who demands less than the level allows has what he demands, and leaves the rest to others.
    """
    reached = demand / uses.weight
    order = np.lexsort((reached, uses.resource))
    resource, by_order = uses.resource[order], demand[order]
    starts = np.searchsorted(resource, np.arange(len(free)))
    ends = np.searchsorted(resource, np.arange(len(free)), side="right")
    taken = np.concatenate(([0.0], np.cumsum(by_order)))
    weights = np.concatenate(([0.0], np.cumsum(uses.weight[order])))
    # If those before it have all that they demand, and it and those behind it are at the level.
    before = taken[:-1] - taken[starts[resource]]
    behind = weights[ends[resource]] - weights[:-1]
    level = np.maximum(free[resource] - before, 0.0) / behind
    fits = level <= reached[order] * (1.0 + _FULL)
    found = np.full(len(free), np.inf)
    # The first that fits, of each resource; what is written last stays.
    places = np.flatnonzero(fits)[::-1]
    found[resource[places]] = level[places]
    return found
