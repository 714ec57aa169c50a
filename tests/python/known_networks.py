"""Networks with known parameters, and captures of transfers over them, for tests of fits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import bentpipe

# Set before the first measurement.
RATE_TOLERANCE: Final = 0.02
DELAY_TOLERANCE: Final = 0.01
LEAST_DELAY_TOLERANCE_S: Final = 1e-3
QUEUE_TOLERANCE: Final = 0.1
# Share of 95% intervals that contain the truth, in tests over many seeds.
LEAST_COVERAGE: Final = 0.9

# The host's own network on both sides of the link that is fitted.
_LAN: Final = {"rate": "1 Gbit/s", "delay": "50 us", "queue": {"limit": "10000 packets"}}
_LAN_S: Final = 2 * 50e-6


@dataclass(frozen=True, kw_only=True)
class KnownNetwork:
    """A download over one satellite link between two local networks."""

    name: str
    rate_bps: float
    return_bps: float
    delay_s: float
    queue_packets: int
    loss: float = 0.0
    mean_burst: float | None = None
    acks: dict[str, Any] | None = None
    duration_s: float = 30.0
    sender: dict[str, Any] = field(default_factory=dict)
    receiver: dict[str, Any] = field(default_factory=dict)
    seed: int = 1

    @property
    def one_way_s(self) -> float:
        """Delay in one direction, local networks included."""
        return self.delay_s + _LAN_S

    @property
    def bdp_packets(self) -> float:
        """Bandwidth-delay product in packets of 1500 bytes."""
        return self.rate_bps * 2 * self.one_way_s / 12000

    def queue_of_bdp(self, share: float) -> KnownNetwork:
        """Return the network with a queue of this share of its bandwidth-delay product."""
        return replace(self, queue_packets=round(share * self.bdp_packets))

    def scenario(self) -> dict[str, Any]:
        """Return the network as a scenario."""
        forward: dict[str, Any] = {
            "rate": f"{self.rate_bps:.0f} bit/s",
            "queue": {"limit": f"{self.queue_packets} packets"},
        }
        if self.loss:
            forward["errors"] = {"packet_loss_rate": self.loss}
            if self.mean_burst:
                forward["errors"]["mean_burst_packets"] = self.mean_burst
        back: dict[str, Any] = {"rate": f"{self.return_bps:.0f} bit/s"}
        if self.acks:
            back["acks"] = self.acks
        return {
            "name": self.name,
            "duration": f"{self.duration_s:g} s",
            "seed": self.seed,
            "hosts": {"server": {"tcp": self.sender}, "client": {"tcp": self.receiver}},
            "gateways": {"hub": {"kind": "router"}, "terminal": {"kind": "router"}},
            "links": {
                "lan": {"between": ["server", "hub"], **_LAN},
                "satellite": {
                    "between": ["hub", "terminal"],
                    "delay": f"{self.delay_s * 1e3:g} ms",
                    "forward": forward,
                    "return": back,
                },
                "home": {"between": ["terminal", "client"], **_LAN},
            },
            "flows": {
                "download": {
                    "from": "client",
                    "to": "server",
                    "app": {"kind": "bulk", "direction": "download"},
                }
            },
        }

    def captures(self, folder: Path) -> tuple[Path, Path]:
        """Simulate the download; return the captures at the sender and at the receiver."""
        sender, receiver = folder / "sender.pcapng", folder / "receiver.pcapng"
        places = [("lan@server", sender), ("home@client", receiver)]
        bentpipe.run(self.scenario(), pcap=places, snap=100)
        return sender, receiver


GEO: Final = KnownNetwork(
    name="geo", rate_bps=10e6, return_bps=1e6, delay_s=0.28, queue_packets=470
)
LEO: Final = KnownNetwork(
    name="leo", rate_bps=50e6, return_bps=10e6, delay_s=0.02, queue_packets=160, duration_s=15.0
)
MODEM: Final = KnownNetwork(
    name="modem", rate_bps=2e6, return_bps=9.6e3, delay_s=0.15, queue_packets=60, duration_s=60.0
)
FILTERED: Final = replace(MODEM, name="filtered", acks={"kind": "filter"})
