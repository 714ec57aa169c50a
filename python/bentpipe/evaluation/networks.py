"""The simulations of an evaluation: senders that share one bottleneck."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bentpipe.scenario import Scenario

TEMPLATE: Final = Path(__file__).parent / "dumbbell.toml"
# Propagation delay outside of the bottleneck, one way: the sender's access and the client's.
_ACCESS_S: Final = 0.002
# Payload of a full segment, and its length on the link.
SEGMENT: Final = 1448
PACKET: Final = 1500

Settings = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Network:
    """A bottleneck: its rate, and the round-trip time of a path through it without queues.

    Measurements begin at `settle_s`, after slow start, and end with the run.
    """

    name: str
    description: str
    rate_bps: float
    rtt_s: float
    duration_s: float
    settle_s: float
    settings: Settings = ()

    @property
    def bdp_bytes(self) -> float:
        """The bandwidth-delay product."""
        return self.rate_bps * self.rtt_s / 8.0

    @property
    def goodput_bps(self) -> float:
        """The highest goodput: the rate without headers."""
        return self.rate_bps * SEGMENT / PACKET

    @property
    def sample_s(self) -> float:
        """The interval of samples: several in each round trip."""
        return min(max(round(self.rtt_s / 4.0, 3), 0.01), 0.1)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A window rule, and further TCP settings of the hosts that use it."""

    name: str
    tcp: Settings = ()

    def settings(self, host: str) -> Settings:
        """Return the keys that make a host use it."""
        table = f"hosts.{host}.tcp"
        rule = (f"{table}.congestion_control", self.name)
        return (rule, *((f"{table}.{key}", value) for key, value in self.tcp))


CUBIC: Final = Rule(name="cubic")
RENO: Final = Rule(name="reno")
BBR: Final = Rule(name="bbr")
BBR3: Final = Rule(name="bbr3")


@dataclass(frozen=True, kw_only=True)
class Flows:
    """One or several equal flows from a host to the client; `app` is TOML.

    A `start` that is empty is random within a round trip or a second, whichever is longer.
    """

    name: str
    host: str = "subject"
    count: int = 1
    app: str = '{ kind = "bulk" }'
    start: str = ""
    spacing: str = ""

    def names(self) -> list[str]:
        """Return the names of the flows in a result."""
        if self.count == 1:
            return [self.name]
        return [f"{self.name}-{number}" for number in range(1, self.count + 1)]

    def table(self, network: Network) -> str:
        """Return the flow's table as TOML."""
        start = self.start or f"uniform(0 s, {max(1.0, network.rtt_s):g} s)"
        keys = [f'from = "{self.host}", to = "client", start = "{start}", app = {self.app}']
        if self.count > 1:
            keys.append(f"count = {self.count}")
        if self.spacing:
            keys.append(f'spacing = "{self.spacing}"')
        return f"{{ {', '.join(keys)} }}"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One simulation: the rules of the three senders, their flows, and the bottleneck's queue.

    * `queue_bdp`: length of a drop-tail queue in bandwidth-delay products.
    * `queue`: another queue, as TOML.
    * `probes`: further series, beside what was delivered, the queue and the drops.
    """

    network: Network
    subject: Rule
    flows: tuple[Flows, ...]
    seed: int
    rival: Rule = CUBIC
    user: Rule = CUBIC
    queue_bdp: float = 1.0
    queue: str = ""
    settings: Settings = ()
    probes: tuple[str, ...] = ()

    def scenario(self) -> Scenario:
        """Return it as a scenario."""
        network = self.network
        way = network.rtt_s / 2.0 - _ACCESS_S
        limit = max(round(self.queue_bdp * network.bdp_bytes), 2 * PACKET)
        bulk = [each.name for each in self.flows if "bulk" in each.app]
        probes = [f"{name}.delivered" for name in bulk]
        probes += [f"bottleneck.forward.{name}" for name in ("queue_bytes", "dropped", "lost")]
        series = ", ".join(f'"{name}"' for name in (*probes, *self.probes))
        keys: dict[str, object] = {
            "seed": self.seed,
            "duration": f"{network.duration_s:g} s",
            "links.bottleneck.rate": f"{network.rate_bps:.0f} bit/s",
            "links.bottleneck.delay": f"{way * 1e3:g} ms",
            "links.bottleneck.forward.queue": self.queue or f'{{ limit = "{limit} B" }}',
            "probes.series": f"[{series}]",
            "probes.interval": f"{network.sample_s * 1e3:g} ms",
        }
        for host, rule in (("subject", self.subject), ("rival", self.rival), ("user", self.user)):
            keys |= dict(rule.settings(host))
        keys |= {f"flows.{each.name}": each.table(network) for each in self.flows}
        keys |= dict(network.settings) | dict(self.settings)
        return Scenario(path=TEMPLATE).with_settings(keys)


WIRED: Final = Network(
    name="wired",
    description="20 Mbit/s, a round trip of 40 ms: an access on the ground",
    rate_bps=20e6,
    rtt_s=0.04,
    duration_s=40.0,
    settle_s=15.0,
)
SLOW: Final = Network(
    name="slow",
    description="1 Mbit/s, 100 ms: a slow access",
    rate_bps=1e6,
    rtt_s=0.1,
    duration_s=60.0,
    settle_s=20.0,
)
FAST: Final = Network(
    name="fast",
    description="100 Mbit/s, 20 ms: fibre",
    rate_bps=100e6,
    rtt_s=0.02,
    duration_s=20.0,
    settle_s=8.0,
)
LONG: Final = Network(
    name="long",
    description="50 Mbit/s, 100 ms: a path between continents",
    rate_bps=50e6,
    rtt_s=0.1,
    duration_s=40.0,
    settle_s=20.0,
)
# A handover every 15 s, as in the ready-made scenario `leo-handover`: 50 ms without a link.
_HANDOVERS: Final = "[{ at = '14.95 s', lasts = '50 ms', every = '15 s' }]"
_DELAYS: Final = (
    "[{ at = '0 s', delay = '18 ms' }, { at = '15 s', delay = '28 ms' }, "
    "{ at = '30 s', delay = '21 ms' }, { at = '45 s', delay = '25 ms' }]"
)
LEO: Final = Network(
    name="LEO",
    description="30 Mbit/s, 40 to 60 ms: a satellite in low Earth orbit; every 15 s a handover "
    "with an outage of 50 ms and another delay",
    rate_bps=30e6,
    rtt_s=0.04,
    duration_s=60.0,
    settle_s=15.0,
    settings=(
        ("links.bottleneck.schedule", _DELAYS),
        ("links.bottleneck.schedule_every", "60 s"),
        ("links.bottleneck.outages", _HANDOVERS),
    ),
)
GEO: Final = Network(
    name="GEO",
    description="10 Mbit/s, 600 ms: a geostationary satellite",
    rate_bps=10e6,
    rtt_s=0.6,
    duration_s=150.0,
    settle_s=60.0,
)
CONSTRAINED: Final = Network(
    name="constrained",
    description="64 kbit/s, 1 s: a narrow link for telemetry",
    rate_bps=64e3,
    rtt_s=1.0,
    duration_s=300.0,
    settle_s=60.0,
)
NETWORKS: Final = (WIRED, SLOW, FAST, LONG, LEO, GEO, CONSTRAINED)
