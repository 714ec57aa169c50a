"""The remedies for a network: the changes that an engineer would try.

Each is a few settings of the scenario file. The scenario alone decides which remedies are
simulated; their gains are found by simulation.
"""

from __future__ import annotations

from dataclasses import replace

from bentpipe.advice.capacity import capacity_remedies
from bentpipe.advice.gateways import gateway_remedies
from bentpipe.advice.links import link_remedies
from bentpipe.advice.network import Network
from bentpipe.advice.quic import quic_remedies
from bentpipe.advice.remedy import PARTIES, Remedy
from bentpipe.advice.senders import tcp_remedies
from bentpipe.advice.traffic import traffic_remedies

__all__ = ["Network", "Remedy", "remedies"]


def remedies(network: Network) -> list[Remedy]:
    """Return the remedies for a network, kind by kind."""
    if not network.paths:
        # There are no remedies for flows to groups.
        return []
    made: list[Remedy] = []
    for kind in (
        tcp_remedies,
        link_remedies,
        traffic_remedies,
        capacity_remedies,
        gateway_remedies,
        quic_remedies,
    ):
        for offered in kind(network):
            # A host that sends and receives was found at both ends.
            settings = tuple(dict.fromkeys(offered.settings))
            who = PARTIES if offered.every_network else network.who_changes(settings)
            remedy = replace(offered, settings=settings, who=who)
            if remedy.settings and remedy.settings not in [each.settings for each in made]:
                made.append(remedy)
    return made
