"""The transfers of quic-acceptance: each access with each window rule and flow-control window."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bentpipe.scenario import Scenario
from bentpipe.studies.quic_acceptance.remedies import GEO, NETWORKS, Remedied, remedied

_FOLDER: Final = Path(__file__).parent
_ROUND_TRIP_S: Final = 0.6
# Bytes of a packet of full size at the link, and its UDP payload.
_PACKET: Final = 1480
_PAYLOAD: Final = 1452


@dataclass(frozen=True, kw_only=True)
class Access:
    """A satellite access, and picoquic's bounds for a transfer over it, by window rule.

    Rates are in bit/s. `queue` is in packets; one bandwidth-delay product if it is None. `loss` is
    the random packet loss of the forward direction.
    """

    name: str
    down_bps: int
    up_bps: int
    bounds_s: tuple[tuple[str, float], ...] = ()
    loss: float = 0.0
    queue: int | None = None
    size_bytes: int = 100_000_000

    @property
    def queue_packets(self) -> int:
        """The queue before the satellite link, in packets."""
        if self.queue is not None:
            return self.queue
        return round(self.down_bps * _ROUND_TRIP_S / 8.0 / _PACKET)

    @property
    def capacity_bytes(self) -> int:
        """The bytes that path and queue hold."""
        return round(self.down_bps * _ROUND_TRIP_S / 8.0) + self.queue_packets * _PAYLOAD


LARGE: Final = Access(
    name="250/3 Mbit/s",
    down_bps=250_000_000,
    up_bps=3_000_000,
    bounds_s=(("bbr", 5.5), ("cubic", 6.5)),
)
# picoquic's test loses one packet in 64.
LOSSY: Final = replace(
    LARGE, name=f"{LARGE.name}, 1/64 lost", loss=1 / 64, bounds_s=(("bbr", 8.0), ("cubic", 7.5))
)
MEDIUM: Final = Access(
    name="50/10 Mbit/s", down_bps=50_000_000, up_bps=10_000_000, bounds_s=(("bbr", 18.2),)
)
SMALL: Final = Access(
    name="10/2 Mbit/s", down_bps=10_000_000, up_bps=2_000_000, bounds_s=(("bbr", 81.5),)
)
# Endres et al.: 10 MiB with a queue of 25 packets.
SHORT_QUEUE: Final = Access(
    name="20/2 Mbit/s, queue of 25",
    down_bps=20_000_000,
    up_bps=2_000_000,
    queue=25,
    size_bytes=10 << 20,
)
SHORT_QUEUE_LOSSY: Final = replace(SHORT_QUEUE, name=f"{SHORT_QUEUE.name}, 1% lost", loss=0.01)
ACCESSES: Final = (LARGE, LOSSY, MEDIUM, SMALL, SHORT_QUEUE, SHORT_QUEUE_LOSSY)

DEFAULT_RULE: Final = "quinn-cubic"
RULES: Final = (DEFAULT_RULE, "quinn-new-reno", "cubic", "hybla", "bbr")
DEFAULT: Final = "quinn's window"
LARGE_WINDOW: Final = "64 MiB"
FITTING: Final = "path and queue"
WINDOWS: Final = (DEFAULT, LARGE_WINDOW, FITTING)
ACK_THRESHOLDS: Final = (None, 9, 19)


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A transfer over an access.

    The sender opens the connection, as in picoquic's tests. `window` names the flow-control windows
    of the receiver, and the sender's limit of unacknowledged data: those of quinn, 64 MiB, or what
    path and queue hold. `resumes`: the sender starts from a saved window, of what path and queue
    hold. `ack_threshold` is the number of packets after which it asks for an acknowledgment.
    """

    access: Access
    rule: str = DEFAULT_RULE
    window: str = DEFAULT
    resumes: bool = False
    ack_threshold: int | None = None
    seed: int = 1

    def scenario(self) -> Scenario:
        """Return it as a scenario."""
        access = self.access
        keys: dict[str, object] = {
            "seed": self.seed,
            "links.satellite.forward.rate": f"{access.down_bps} bit/s",
            "links.satellite.return.rate": f"{access.up_bps} bit/s",
            "links.satellite.forward.queue.limit": f"{access.queue_packets} packets",
            "flows.transfer.app.size": f"{access.size_bytes} B",
            "hosts.server.quic.congestion_control": self.rule,
        }
        if access.loss:
            keys["links.satellite.forward.errors.packet_loss_rate"] = access.loss
        if self.window != DEFAULT:
            size = "64 MiB" if self.window == LARGE_WINDOW else f"{access.capacity_bytes} B"
            keys["hosts.client.quic.stream_window"] = size
            keys["hosts.server.quic.send_window"] = size
        if self.resumes:
            keys["hosts.server.resume"] = (
                f'{{ window = "{access.capacity_bytes} B", rtt = "600 ms" }}'
            )
        if self.ack_threshold is not None:
            keys["hosts.server.quic.ack_threshold"] = self.ack_threshold
        return Scenario(path=_FOLDER / "access.toml").with_settings(keys)

    @property
    def name(self) -> str:
        """The name that distinguishes it from other transfers over the same access."""
        asked = "" if self.ack_threshold is None else f", ACK after {self.ack_threshold}"
        return f"{self.rule}, {self.window}{asked}{', saved path' if self.resumes else ''}"


def of(access: Access) -> list[Transfer]:
    """Return the transfers over an access."""
    return [
        Transfer(access=access, rule=rule, window=window) for window in WINDOWS for rule in RULES
    ]


def acknowledged(access: Access) -> list[Transfer]:
    """Return the transfers with each frequency of ACKs, without and with a saved path."""
    return [
        Transfer(
            access=access, rule="cubic", window=FITTING, resumes=resumes, ack_threshold=threshold
        )
        for resumes in (False, True)
        for threshold in ACK_THRESHOLDS
    ]


Cell = Transfer | Remedied


def every_cell(quick: bool) -> list[Cell]:
    """Return every cell; `quick` leaves out those that no claim is about."""
    accesses = [each for each in ACCESSES if not quick or each.bounds_s]
    cells: list[Cell] = [cell for access in accesses for cell in of(access)]
    cells += [cell for access in (LARGE, SMALL) for cell in acknowledged(access)]
    cells += remedied((GEO,) if quick else NETWORKS)
    return list(dict.fromkeys(cells))
