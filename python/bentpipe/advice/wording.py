"""Limits of flows in words, for tables and reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bentpipe.advice.advisor import FlowLimits

SPELLED: Final = {
    "downlink": "the link itself",
    "acknowledgments": "the acknowledgments' path",
    "capacity": "the granted capacity",
    "slow_start": "slow start",
    "congestion_window": "the congestion window",
    "receive_window": "the receive window",
    "send_buffer": "the send buffer",
    "application": "the application",
    "pacing": "pacing",
    "recovery": "loss recovery",
}
# Limits that no setting of the sender can raise.
_GIVES_ALL: Final = frozenset({"downlink", "acknowledgments", "capacity", "carrier", "processing"})
# Names in a line at most.
_MOST_NAMES: Final = 3


def usual_flow(flows: Sequence[FlowLimits]) -> FlowLimits:
    """Return what is usual among flows of one kind.

    The goodput is the median of all. The links are those of the first flow with the most frequent
    verdict; their utilisation and the limits are averages over the flows with that verdict.
    """
    ((verdict, _),) = Counter(flow.verdict for flow in flows).most_common(1)
    alike = [flow for flow in flows if flow.verdict == verdict]
    names = dict.fromkeys(name for flow in alike for name in flow.limits)
    limits = {name: fmean(flow.limits.get(name, 0.0) for flow in alike) for name in names}
    return replace(
        alike[0],
        goodput_bps=median(flow.goodput_bps for flow in flows),
        downlink_used=fmean(flow.downlink_used for flow in alike),
        uplink_used=fmean(flow.uplink_used for flow in alike),
        limits=dict(sorted(limits.items(), key=lambda each: -each[1])),
    )


def full_resources(flows: Sequence[FlowLimits]) -> Iterator[str]:
    """Name processors and carriers that limit flows, and what that means for remedies."""
    processors = {
        flow.processor.name: flow.processor.used
        for flow in flows
        if flow.verdict == "processing" and flow.processor is not None
    }
    carriers = {
        carrier.name: carrier.used for flow in flows if (carrier := flow.full_carrier) is not None
    }
    if processors:
        yield (
            f"Busy: {_used('the processor of ', processors)}. No window, queue or gateway makes a "
            "processor faster; fewer or longer packets are less work for it."
        )
    if carriers:
        yield (
            f"Full: {_used('the carrier ', carriers)}. No setting gives a carrier more capacity; "
            "more for one terminal is less for the others."
        )


def _used(what: str, used: Mapping[str, float]) -> str:
    shown = [f"{what}{name} ({share:.0%})" for name, share in list(used.items())[:_MOST_NAMES]]
    more = len(used) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def limited_by(flow: FlowLimits) -> str:
    """Return what limits a flow: the resource that is full, or the shares of the limits."""
    shares = _shares(flow.limits)
    spelled = SPELLED.get(flow.verdict, "")
    if flow.verdict == "processing" and flow.processor is not None:
        spelled = f"the processor of {flow.processor.name}"
    elif (carrier := flow.full_carrier) is not None:
        by_name = f"the carrier {carrier.name}"
        spelled = by_name if flow.verdict == "carrier" else f"{spelled}, by {by_name}"
    if flow.verdict in _GIVES_ALL:
        return f"{spelled} ({shares})" if shares else spelled
    if flow.verdict == "gateway":
        return f"the part beyond {flow.gateway} ({shares})"
    return shares or SPELLED[flow.verdict]


def _shares(limits: Mapping[str, float]) -> str:
    shown = [(name, share) for name, share in limits.items() if share >= 0.005]
    return ", ".join(f"{SPELLED[name]} {share:.0%}" for name, share in shown)
