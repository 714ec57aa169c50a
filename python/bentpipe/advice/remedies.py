"""The changes that might help a network: what an engineer would try, one after the other.

Each is a few settings of the scenario file. Which ones are worth simulating follows from the
scenario alone; whether they help, only the simulation tells.
"""

from __future__ import annotations

from dataclasses import replace

from bentpipe.advice.capacity import capacity_remedies
from bentpipe.advice.gateways import gateway_remedies
from bentpipe.advice.links import link_remedies
from bentpipe.advice.network import Network
from bentpipe.advice.remedy import PARTIES, Remedy
from bentpipe.advice.senders import tcp_remedies
from bentpipe.advice.traffic import traffic_remedies

__all__ = ["Network", "Remedy", "remedies"]


def remedies(network: Network) -> list[Remedy]:
    """Return the changes that may help, each kind's after each other."""
    if not network.paths:
        # Of what is sent to groups, nothing here is about.
        return []
    made: list[Remedy] = []
    for kind in (
        tcp_remedies,
        link_remedies,
        traffic_remedies,
        capacity_remedies,
        gateway_remedies,
    ):
        for offered in kind(network):
            # A host that sends and receives was found at both ends.
            settings = tuple(dict.fromkeys(offered.settings))
            who = PARTIES if offered.every_network else network.who_changes(settings)
            remedy = replace(offered, settings=settings, who=who)
            if remedy.settings and remedy.settings not in [each.settings for each in made]:
                made.append(remedy)
    return made
