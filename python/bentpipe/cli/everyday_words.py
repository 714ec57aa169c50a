"""Everyday words for what a scenario file calls otherwise, as `bentpipe explain` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Term(NamedTuple):
    """A word that is no key: what it means here, and the keys that are about it."""

    meaning: str
    keys: tuple[str, ...] = ()


_LOSS: Final = (
    "links.NAME.errors.packet_loss_rate",
    "links.NAME.errors.bit_error_rate",
    "links.NAME.errors.mean_burst_packets",
    "links.NAME.queue.limit",
    "links.NAME.outages",
)
_CHANGES: Final = ("links.NAME.schedule", "links.NAME.traces", "links.NAME.outages")
_DEMAND: Final = ("links.NAME.access.kind", "carriers")

TERMS: Final[Mapping[str, Term]] = {
    "aqm": Term(
        "Active queue management: the queue drops or marks packets before it is full.",
        ("links.NAME.queue.kind", "links.NAME.queue.target"),
    ),
    "bandwidth": Term("The rate of a link.", ("links.NAME.rate", "links.NAME.access.kind")),
    "bufferbloat": Term(
        "Long delays in a long queue. Queues with a target delay avoid them.",
        ("links.NAME.queue.kind", "links.NAME.queue.limit", "links.NAME.queue.target"),
    ),
    "call": Term(
        'Telephone calls are the application "voice".',
        ("flows.NAME.app.kind", "flows.NAME.app.codec", "flows.NAME.app.jitter_buffer"),
    ),
    "cra": Term(
        "Continuous rate assignment of DVB-RCS2: capacity that a terminal has in every frame.",
        ("links.NAME.access.constant", *_DEMAND),
    ),
    "dama": Term(
        "Demand-assigned multiple access: terminals ask a hub for capacity on a shared carrier.",
        (*_DEMAND, "links.NAME.access"),
    ),
    "dvb-rcs2": Term(
        "Its return link: terminals ask a hub for capacity on a shared carrier.",
        (*_DEMAND, "links.NAME.access"),
    ),
    "fca": Term(
        "Free capacity assignment of DVB-RCS2: the rest of a frame, given to terminals unasked.",
        ("links.NAME.access.free", *_DEMAND),
    ),
    "handoff": Term(
        "A handover: a change of the satellite or beam. The delay and rate step, and packets may "
        "be lost.",
        ("links.NAME.path.handover", *_CHANGES, "links.NAME.in_order"),
    ),
    "jitter": Term(
        "Variation of the delay. It comes from queues, from a delay that changes (schedule, "
        "traces), from reordering and from frames of capacity on demand. A call's jitter buffer "
        "evens it out.",
        (
            *("links.NAME.schedule", "links.NAME.traces", "links.NAME.reordering"),
            *("links.NAME.path.variation.jitter", "flows.NAME.app.jitter_buffer"),
        ),
    ),
    "latency": Term(
        "The propagation delay of a link, and the time in its queue.",
        ("links.NAME.delay", "links.NAME.queue.limit", "links.NAME.queue.target"),
    ),
    "loss": Term(
        "Packets are lost to errors, to a full queue, and to outages.",
        _LOSS,
    ),
    "mos": Term(
        "Mean opinion score of a call, from 1 to 4.5, after the E-model (ITU-T G.107). It is a "
        'result of the application "voice": `call_mos` in `bentpipe run --json`.',
        ("flows.NAME.app.kind", "flows.NAME.app.codec", "flows.NAME.app.jitter_buffer"),
    ),
    "nat": Term(
        'Address translation is a gateway of kind "nat": its address changes with the gateway of a '
        "path over satellites, and connections break.",
        ("gateways.NAME.kind", "gateways.NAME.facing", "links.NAME.path"),
    ),
    "pep": Term(
        "Performance-enhancing proxy (RFC 3135): a gateway that ends TCP connections (split) or "
        "acknowledges in a host's place (hybrid).",
        ("gateways.NAME.kind", "gateways.NAME.facing", "gateways.NAME.tcp"),
    ),
    "qos": Term(
        "Priorities and shares of a link's rate are queues with classes.",
        (
            *("classes", "links.NAME.queue.kind", "links.NAME.queue.classes"),
            "links.NAME.queue.weights",
        ),
    ),
    "rain": Term(
        "A fade: a modem lowers its rate, or packets are lost, or the link goes away.",
        ("links.NAME.schedule", "links.NAME.fading", "links.NAME.outages"),
    ),
    "rbdc": Term(
        "Rate-based dynamic capacity of DVB-RCS2: a terminal asks for a rate.",
        ("links.NAME.access.rate_based", *_DEMAND),
    ),
    "rtt": Term(
        "The round-trip time is a result; the delays of the links make it.",
        ("links.NAME.delay", "hosts.NAME.tcp.initial_rto", "hosts.NAME.resume.rtt"),
    ),
    "starlink": Term(
        "A LEO network: the delay steps every 15 s, and packets are lost at handovers. Orbits give "
        "its paths; recorded ones are traces.",
        ("links.NAME.path", "links.NAME.path.variation", "constellations.NAME.preset", *_CHANGES),
    ),
    "throughput": Term(
        "Goodput is a result; the rates of the links bound it.",
        ("links.NAME.rate", "hosts.NAME.tcp.receive_buffer"),
    ),
    "vbdc": Term(
        "Volume-based dynamic capacity of DVB-RCS2: a terminal asks for an amount of data.",
        ("links.NAME.access.volume_based", *_DEMAND),
    ),
    "voip": Term(
        'Telephone calls are the application "voice".',
        ("flows.NAME.app.kind", "flows.NAME.app.codec", "flows.NAME.app.jitter_buffer"),
    ),
    "vpn": Term(
        "A tunnel adds a header to each packet, and split gateways cannot see into it.",
        ("links.NAME.tunnel", "gateways.NAME.except"),
    ),
    "weather": Term(
        "A fade: a modem lowers its rate, or packets are lost, or the link goes away.",
        ("links.NAME.schedule", "links.NAME.fading", "links.NAME.outages"),
    ),
}


def term_for(word: str) -> Term | None:
    """Return the term for a word, in capitals or plural, too."""
    plain = word.strip().lower().replace("_", "-")
    return TERMS.get(plain) or TERMS.get(plain.removesuffix("s"))
