"""Random networks with one browser and equal pages, for the model of page loads."""

from __future__ import annotations

import math
import random
from typing import Any


def page_network(seed: int) -> dict[str, Any]:
    """Return the network of a seed: LEO to GEO, narrow to fast, hosts of 2000 and of today."""
    draw = random.Random(seed)

    def decades(low: float, high: float) -> int:
        return round(math.exp(draw.uniform(math.log(low), math.log(high))))

    down_bps = decades(64e3, 50e6)
    up_bps = round(down_bps / math.exp(draw.uniform(0.0, math.log(20.0))))
    down_us = round(draw.choice((5e3, 30e3, 125e3, 250e3, 300e3)) * draw.uniform(0.8, 1.2))
    up_us = round(draw.choice((5e3, 30e3, 250e3)) * draw.uniform(0.8, 1.2))
    tcp: dict[str, Any]
    if draw.random() < 0.3:
        tcp = {
            "congestion_control": "reno",
            "recovery": "reno",
            "slow_start": "standard",
            "congestion_avoidance": "per-acknowledgment",
            "initial_window": f"{draw.choice((1, 2, 4))} segments",
            "receive_buffer": f"{draw.choice((8, 16, 32, 65))}000 B",
            "window_scaling": False,
            "timestamps": False,
            "sack": False,
            "delayed_ack": "200 ms",
        }
    else:
        tcp = {
            "congestion_control": draw.choice(("reno", "cubic")),
            "quick_acks": draw.choice((0, 16)),
        }
    app = {
        "kind": "web",
        "http": draw.choice(("1.1", "2")),
        "tls": draw.choice(("off", "1.2", "1.3")),
        "page": "fixed",
        "document": f"{decades(2e3, 100e3)} B",
        "objects": draw.randint(0, 40),
        "object_size": f"{decades(500, 100e3)} B",
        "levels": draw.randint(1, 3),
        "pages": 1,
        "think": f"{draw.choice((0, 0, 50))} ms",
    }
    satellite = {
        "between": ["server", "client"],
        "forward": {"rate": f"{down_bps} bit/s", "delay": f"{down_us} us"},
        "return": {"rate": f"{up_bps} bit/s", "delay": f"{up_us} us"},
        "queue": {"limit": "100000 packets"},
    }
    return {
        "name": "page",
        "duration": "1000 s",
        "hosts": {"server": {"tcp": tcp}, "client": {"tcp": dict(tcp)}},
        "links": {"satellite": satellite},
        "flows": {"page": {"from": "client", "to": "server", "app": app}},
    }
