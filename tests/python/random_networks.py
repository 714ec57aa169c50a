"""Random networks for tests that compare predictions with runs.

Half of the networks are plain: one transfer over links that keep their rate, delay and loss rate.
The others may have anything that a prediction has to take into account: changing paths, several
flows, gateways, queue management, capacity on demand, acknowledgment methods.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

Network = dict[str, Any]

_WINDOW_RULES = ["cubic", "cubic", "reno", "hybla", "bbr", "bbr1", "bbr3", "westwood"]
_MANAGED_QUEUES = ["red", "codel", "pie", "fair", "fq-codel"]
_ACK_METHODS = ["suppression", "compaction", "filter", "reconstruction"]


class _Draw:
    """Draws of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one_of(self, values: list[Any]) -> Any:
        return self.random.choice(values)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def maybe(self, probability: float, **keys: Any) -> dict[str, Any]:
        """Return the keys with this probability, and nothing otherwise."""
        return keys if self.chance(probability) else {}

    def between(self, low: float, high: float) -> float:
        """Return a number whose logarithm is evenly distributed."""
        return math.exp(self.random.uniform(math.log(low), math.log(high)))

    def rate(self, low: float, high: float) -> str:
        return f"{self.between(low, high):.0f} bit/s"

    def delay(self) -> str:
        return f"{self.between(0.5, 300.0):.2f} ms"


def random_network(seed: int) -> Network:
    """Return the network of a seed, as a scenario's tables."""
    draw = _Draw(seed)
    plain = draw.chance(0.5)
    network: Network = {
        "name": "random",
        "duration": f"{draw.one_of([20, 40, 90])} s",
        "seed": seed % 1_000,
        "ip": draw.one_of(["v4", "v4", "v6"]),
        "hosts": {"server": _host(draw, plain=plain), "client": _host(draw, plain=plain)},
        "gateways": {"hub": {} if plain else _gateway(draw)},
        "links": {
            "lan": {"between": ["server", "hub"], "rate": "100 Mbit/s", "delay": "1 ms"},
            "satellite": _satellite(draw, plain=plain),
        },
    }
    count = 1 if plain else draw.one_of([1, 1, 2, 3])
    flows = {f"flow-{number}": _flow(draw, plain=plain) for number in range(count)}
    return network | {"flows": flows}


def _host(draw: _Draw, *, plain: bool) -> dict[str, Any]:
    buffer = f"{draw.between(4e3, 4e6):.0f} B"
    tcp = {
        **draw.maybe(0.3, profile="linux"),
        **draw.maybe(0.5, congestion_control=draw.one_of(_WINDOW_RULES)),
        **draw.maybe(0.4, receive_buffer=buffer),
        **draw.maybe(0.2, send_buffer=buffer),
        **draw.maybe(0.15, delayed_ack="off"),
        **draw.maybe(0.1, pacing=draw.rate(1e5, 1e7)),
        **draw.maybe(0.1, timestamps=False),
    }
    if tcp.get("congestion_control", "cubic") != "cubic":
        tcp |= draw.maybe(0.2, slow_start="standard")
    served = {"processing": {"time": f"{draw.between(20.0, 5000.0):.0f} us"}}
    return {"tcp": tcp} | draw.maybe(0.05 if plain else 0.15, **served)


def _gateway(draw: _Draw) -> dict[str, Any]:
    kind = draw.random.random()
    if kind < 0.2:
        return {"kind": "split", "facing": "satellite"}
    if kind < 0.3:
        return {"kind": "hybrid", "facing": "satellite"}
    return {}


def _satellite(draw: _Draw, *, plain: bool) -> dict[str, Any]:
    forward, back = _direction(draw, plain=plain), _direction(draw, plain=plain)
    if draw.chance(0.3):
        # A return link that acknowledgments may fill.
        back["rate"] = draw.rate(2e3, 1e5)
    if not plain:
        if "kind" not in back.get("queue", {}):
            back |= draw.maybe(0.15, acks={"kind": draw.one_of(_ACK_METHODS)})
        if "schedule" not in back:
            back |= draw.maybe(0.1, access={"kind": "on-demand", "volume_based": True})
    return {
        "between": ["hub", "client"],
        "forward": forward,
        "return": back,
        **draw.maybe(0.1, framing="ethernet"),
    }


def _direction(draw: _Draw, *, plain: bool) -> dict[str, Any]:
    direction: dict[str, Any] = {"rate": draw.rate(6e4, 2e7), "delay": draw.delay()}
    queue: dict[str, Any] = draw.maybe(0.4, limit=f"{draw.between(5.0, 2000.0):.0f} packets")
    losses: dict[str, Any] = {"packet_loss_rate": round(draw.between(1e-5, 0.05), 7)}
    if not plain:
        queue |= draw.maybe(0.15, kind=draw.one_of(_MANAGED_QUEUES))
        losses |= draw.maybe(0.3, mean_burst_packets=draw.random.randint(2, 20))
        direction |= _changes(draw)
    direction |= {"queue": queue} if queue else {}
    return direction | draw.maybe(0.35, errors=losses)


def _changes(draw: _Draw) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if draw.chance(0.25):
        times = sorted(draw.random.sample(range(1, 60), draw.one_of([1, 2, 4])))
        keys = draw.one_of([("rate",), ("delay",), ("packet_loss_rate",), ("rate", "delay")])
        values: dict[str, Callable[[], str | float]] = {
            "rate": lambda: draw.rate(1e5, 2e7),
            "delay": draw.delay,
            "packet_loss_rate": lambda: round(draw.between(1e-4, 0.1), 6),
        }
        changes["schedule"] = [
            {"at": f"{at} s"} | {key: values[key]() for key in keys} for at in times
        ]
    outage = {"at": "7 s", "lasts": f"{draw.between(0.2, 8.0):.1f} s"}
    return changes | draw.maybe(0.1, outages=[outage])


def _flow(draw: _Draw, *, plain: bool) -> dict[str, Any]:
    size = draw.maybe(0.4, size=f"{draw.between(2e4, 3e7):.0f} B")
    ends = {"from": "server", "to": "client"}
    if draw.chance(0.25):
        ends = {"from": "client", "to": "server"}
    bulk = {"kind": "bulk", "direction": draw.one_of(["upload", "download"]), **size}
    apps = [
        {"kind": "voice"},
        {"kind": "ping", "interval": "500 ms"},
        {"kind": "packets", "size": "500 B", "interval": f"{draw.between(2.0, 200.0):.0f} ms"},
        {"kind": "web"},
        {"kind": "bulk", "direction": "both", **size},
        {"kind": "bulk", "size": "20 kB", "transfers": 3},
    ]
    app = bulk
    if draw.chance(0.1 if plain else 0.4):
        app = draw.one_of(apps[:3] if plain else apps)
    start = {} if plain else draw.maybe(0.3, start="3 s")
    return {**ends, "app": app, **start}
