"""Shares of several resources: each use of one gets no more than the resource's level allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

# Relative rounding errors of levels, and of a resource and the demand for it.
_ALIKE: Final = 1e-12
_FULL: Final = 1e-9
# Where all uses have equal weights, each round settles at least one level; other levels converge.
# All resources are updated together in the first rounds, which nearly always suffices. After that
# they alternate, so that no two are always updated together.
_ROUNDS_AT_ONCE: Final = 30
_ROUNDS: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class Uses:
    """Uses of resources: one entry for each pair of a user and a resource, arrays of one length.

    `cost` is the amount of the resource that a unit of the user's rate takes. `weight` is the
    amount that a unit of the resource's level allows. Where both are equal, a level is a rate, and
    all users of a resource get the same.
    """

    user: Indices
    resource: Indices
    cost: Floats
    weight: Floats


def levels(uses: Uses, *, free: Floats, wanted: Floats) -> tuple[Floats, Floats]:
    """Return each user's rate, and for each use the rate that its resource allows the user.

    Every user has the rate that it wants, or a bottleneck. A bottleneck is a full resource of
    which no other use is larger, measured by the weights. This is max-min fairness where weights
    are costs (Bertsekas and Gallager, Data Networks, section 6.5.2). Otherwise it is bottleneck
    max fairness (T. Bonald and J. Roberts, Multi-resource fairness, SIGMETRICS 2015).

    Parameters
    ----------
    uses
        The uses.
    free
        The amount of each resource.
    wanted
        The rate of each user without the others.
    """
    caps = np.full(len(uses.user), np.inf)
    every = np.ones(len(caps), dtype=bool)
    bits = max(1, int(len(free) - 1).bit_length())
    settled_for = 0
    for turn in range(_ROUNDS):
        at_once = turn < _ROUNDS_AT_ONCE
        # Two resources with the same users may alternate for ever, each with the other's value.
        # Any two differ in a binary digit of their numbers.
        digit, value = divmod(turn % (2 * bits), 2)
        looked_at = every if at_once else (uses.resource >> digit) % 2 == value
        # The demand of a use if its own resource had room.
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

    A use that demands less than the level allows gets its demand; the others share the rest.
    """
    reached = demand / uses.weight
    order = np.lexsort((reached, uses.resource))
    resource, by_order = uses.resource[order], demand[order]
    starts = np.searchsorted(resource, np.arange(len(free)))
    ends = np.searchsorted(resource, np.arange(len(free)), side="right")
    taken = np.concatenate(([0.0], np.cumsum(by_order)))
    weights = np.concatenate(([0.0], np.cumsum(uses.weight[order])))
    # The level if all uses before this one get their demand, and the others are at the level.
    before = taken[:-1] - taken[starts[resource]]
    behind = weights[ends[resource]] - weights[:-1]
    level = np.maximum(free[resource] - before, 0.0) / behind
    fits = level <= reached[order] * (1.0 + _FULL)
    found = np.full(len(free), np.inf)
    # The first use that fits, for each resource: later writes replace earlier ones.
    places = np.flatnonzero(fits)[::-1]
    found[resource[places]] = level[places]
    return found
