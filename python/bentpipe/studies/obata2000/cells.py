"""The networks and transfers of obata2000, and additional ones."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bentpipe.scenario import Scenario

if TYPE_CHECKING:
    from bentpipe.model import AsymmetricPath

TEMPLATE: Final = Path(__file__).parent / "asymmetric.toml"
FLOW: Final = "transfer"

# Table 1.
SEGMENT_BYTES: Final = 1448
HEADER_BYTES: Final = 52
ACK_BYTES: Final = 52
# Section 3.2: d in the formula, and the timer of BSD's receivers in the experiments.
DELAYED_ACK_S: Final = 0.2
# The default of ns-2's Agent/TCPSink/DelAck, which simulates figures 5 and 6. The paper gives no
# value for its simulations; the search in `open_settings.py` finds this one.
NS2_DELAYED_ACK_S: Final = 0.1
# The paper does not say whether its KByte is 1000 or 1024 bytes. The search finds 1024; both are
# simulated, and the figures show 1024.
KBYTES: Final = (1024, 1000)
# The throughput axis of figures 5 and 6.
AXIS_BPS: Final = 1_250_000
FILE_KBYTES: Final = 1024
# Section 4.2.
WINDOWS_KBYTES: Final = (4, 8, 16, 32, 64, 128, 192)
# Sections 4.2 and 4.2.2: "between 3KByte and 32KByte"; "2Kbyte, 4Kbyte, 6Kbyte".
VSAT_WINDOWS_KBYTES: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32)
# Section 4.2.2: one redundant bit per 15 bits.
REDUNDANCY: Final = Fraction(16, 15)
# Section 4.2: each of the experiment's connections lasted 60 seconds.
CONNECTION_S: Final = 60.0
# Section 3.3's case: transfers that end in slow start, or soon after it.
SHORT_FILES_KBYTES: Final = (2, 4, 8, 16, 32, 64, 128)

RANDOM_NETWORKS: Final = 200
RANDOM_SEED: Final = 2000


@dataclass(frozen=True, kw_only=True)
class Network:
    """Two one-way links (the satellite's down, the terrestrial one up), and the client's timer."""

    downlink_bps: int
    downlink_delay_s: float
    uplink_bps: int
    uplink_delay_s: float
    redundancy: Fraction = Fraction(1)
    delayed_ack_s: float = DELAYED_ACK_S

    def path(self) -> AsymmetricPath:
        """Return the network as a path of the models."""
        from bentpipe.model import AsymmetricPath

        return AsymmetricPath(
            downlink_rate_bps=self.downlink_bps,
            uplink_rate_bps=self.uplink_bps,
            downlink_delay_s=self.downlink_delay_s,
            uplink_delay_s=self.uplink_delay_s,
            segment_payload_bytes=SEGMENT_BYTES,
            header_bytes=HEADER_BYTES,
            ack_bytes=ACK_BYTES,
            redundancy=float(self.redundancy),
        )

    def saturation_window(self) -> float:
        """Return W_sat in segments, not rounded: equation 13."""
        from bentpipe.model import obata2000

        return float(obata2000.saturation_window_segments(path=self.path()))


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """One transfer over one network: a cell of the study.

    Without `file_bytes` it lasts until `duration_s`. `lost_segments` are the data segments, counted
    from 0, that the satellite link loses; `traced` records the quantities of figure 9.
    """

    network: Network
    window_segments: int
    file_bytes: int | None
    duration_s: float | None = None
    lost_segments: tuple[int, ...] = ()
    traced: bool = False

    def scenario(self) -> Scenario:
        """Return the transfer as a scenario."""
        network = self.network
        settings: dict[str, object] = {
            "links.asymmetric.forward.rate": f"{network.downlink_bps} bit/s",
            "links.asymmetric.forward.delay": _time(network.downlink_delay_s),
            "links.asymmetric.forward.redundancy": "{}/{}".format(
                *network.redundancy.as_integer_ratio()
            ),
            "links.asymmetric.return.rate": f"{network.uplink_bps} bit/s",
            "links.asymmetric.return.delay": _time(network.uplink_delay_s),
            "hosts.client.tcp.delayed_ack": _time(network.delayed_ack_s),
            "hosts.client.tcp.receive_buffer": f"{self.window_segments * SEGMENT_BYTES} B",
            # Without a file size: more data than any link here carries in the time.
            "flows.transfer.app.size": f"{self.file_bytes or 10**9} B",
        }
        if self.duration_s is not None:
            settings["duration"] = _time(self.duration_s)
        if self.lost_segments:
            # The link counts packets from 1; the SYN and the handshake's ACK precede the data.
            packets = [segment + 3 for segment in self.lost_segments]
            settings["links.asymmetric.forward.errors.lost_packets"] = packets
        if self.traced:
            quantities = ("sent", "retransmitted", "acknowledged", "delivered", "congestion_window")
            settings["probes.series"] = [f"{FLOW}.{quantity}" for quantity in quantities]
            settings["probes.interval"] = "every-change"
        return Scenario(path=TEMPLATE).with_settings(settings)


_NS2: Final = Network(
    downlink_bps=2_048_000,
    downlink_delay_s=0.25,
    uplink_bps=64_000,
    uplink_delay_s=0.125,
    delayed_ack_s=NS2_DELAYED_ACK_S,
)
FIGURE_5: Final = {
    f"{round(delay_s * 1e3)} ms": replace(_NS2, uplink_delay_s=delay_s)
    # Table 1 has 25 ms, section 4.2.1 has 30 ms.
    for delay_s in (0.25, 0.125, 0.03, 0.025)
}
FIGURE_6: Final = {
    f"{rate_bps // 1000} kbit/s": replace(_NS2, uplink_bps=rate_bps)
    for rate_bps in (64_000, 16_000, 4_000)
}
SYMMETRIC: Final = Network(
    downlink_bps=64_000,
    downlink_delay_s=0.25,
    uplink_bps=64_000,
    uplink_delay_s=0.25,
    redundancy=REDUNDANCY,
)
ASYMMETRIC: Final = Network(
    downlink_bps=64_000,
    downlink_delay_s=0.25,
    uplink_bps=737_000,
    uplink_delay_s=0.025,
    redundancy=REDUNDANCY,
)

# Networks that test equation 13: in all of them, the uplink keeps up with the downlink.
SATURATION_DELAYS_S: Final = (0.025, 0.125, 0.25)
SATURATION_RATES_BPS: Final = (64_000, 128_000, 256_000)
# Two sizes: their difference is the long-run rate, without slow start.
SATURATION_FILES: Final = (4_000 * SEGMENT_BYTES, 14_000 * SEGMENT_BYTES)

# Figure 9: 32 KByte of window, two lost segments. The paper does not say which two: the gap between
# them is varied. The window is fully open before the first of them.
FIGURE_9_WINDOW: Final = 32 * 1024 // SEGMENT_BYTES
FIGURE_9_FIRST_LOSS: Final = 100
FIGURE_9_GAPS: Final = (1, 2, 3, 4, 6, 8, 12, 16)


def window_segments(kbytes: float, kbyte_bytes: int = 1024) -> int:
    """Return a window in whole segments."""
    return int(kbytes * kbyte_bytes // SEGMENT_BYTES)


def figure_cells(network: Network, kbyte_bytes: int) -> list[Transfer]:
    """Return the cells of one curve of figures 5 and 6: the windows, and W_sat down and up."""
    saturation = network.saturation_window()
    windows = [window_segments(each, kbyte_bytes) for each in WINDOWS_KBYTES]
    windows += [math.floor(saturation), math.ceil(saturation)]
    return [
        Transfer(network=network, window_segments=window, file_bytes=FILE_KBYTES * kbyte_bytes)
        for window in sorted(windows)
    ]


def figures_5_and_6(kbytes: Iterable[int] = KBYTES) -> list[Transfer]:
    """Return every cell of figures 5 and 6; the curve that they share, once."""
    curves = {**FIGURE_5, **FIGURE_6}.values()
    every = [cell for kbyte in kbytes for curve in curves for cell in figure_cells(curve, kbyte)]
    return list(dict.fromkeys(every))


def vsat_cells(network: Network, *, timed: bool) -> list[Transfer]:
    """Return the cells of figures 7, 8 and 10: table 1's file, or a minute as in the experiment."""
    return [
        Transfer(
            network=network,
            window_segments=window_segments(kbytes),
            file_bytes=None if timed else FILE_KBYTES * 1024,
            duration_s=CONNECTION_S if timed else None,
        )
        for kbytes in VSAT_WINDOWS_KBYTES
    ]


def short_and_long_cells() -> dict[str, tuple[list[Transfer], Transfer]]:
    """Return short transfers and one of table 1's file, by network, with the largest window."""
    networks = {"figure 8's network": ASYMMETRIC, "figure 5's at 125 ms": FIGURE_5["125 ms"]}
    found = {}
    for name, network in networks.items():
        *short, whole = (
            Transfer(
                network=network,
                window_segments=window_segments(WINDOWS_KBYTES[-1]),
                file_bytes=kbytes * 1024,
            )
            for kbytes in (*SHORT_FILES_KBYTES, FILE_KBYTES)
        )
        found[name] = (short, whole)
    return found


def saturation_networks() -> dict[str, Network]:
    """Return the networks that test equation 13."""
    base = FIGURE_5["125 ms"]
    delays = {
        f"{round(each * 1e3)} ms": replace(base, uplink_delay_s=each)
        for each in SATURATION_DELAYS_S
    }
    rates = {
        f"{each // 1000} kbit/s": replace(base, uplink_bps=each) for each in SATURATION_RATES_BPS
    }
    return delays | rates


def saturation_cells(network: Network) -> dict[int, tuple[Transfer, Transfer]]:
    """Return a short and a long transfer for every even window around W_sat.

    Even windows only: with an odd one, the delayed-ACK timer and not the window decides.
    """
    expected = network.saturation_window()
    lowest, highest = (2 * round(factor * expected / 2.0) for factor in (0.85, 1.15))
    shorter, longer = SATURATION_FILES
    return {
        window: (
            Transfer(network=network, window_segments=window, file_bytes=shorter),
            Transfer(network=network, window_segments=window, file_bytes=longer),
        )
        for window in range(lowest, highest + 1, 2)
    }


def lossy_cells() -> dict[int, Transfer]:
    """Return figure 9's connection, by the gap between the two lost segments."""
    return {
        gap: Transfer(
            network=ASYMMETRIC,
            window_segments=FIGURE_9_WINDOW,
            file_bytes=None,
            duration_s=CONNECTION_S,
            lost_segments=(FIGURE_9_FIRST_LOSS, FIGURE_9_FIRST_LOSS + gap),
            traced=gap == FIGURE_9_GAPS[0],
        )
        for gap in FIGURE_9_GAPS
    }


def random_cells(count: int = RANDOM_NETWORKS) -> list[Transfer]:
    """Return random asymmetric networks, always the same; no formula was fitted to them."""
    draw = random.Random(RANDOM_SEED)

    def decades(low: float, high: float) -> int:
        return round(math.exp(draw.uniform(math.log(low), math.log(high))))

    return [
        Transfer(
            network=Network(
                downlink_bps=decades(64e3, 50e6),
                # Whole microseconds, as in the scenario file.
                downlink_delay_s=draw.randrange(5_000, 400_000) / 1e6,
                uplink_bps=decades(4e3, 1e6),
                uplink_delay_s=draw.randrange(5_000, 400_000) / 1e6,
            ),
            window_segments=draw.randint(1, 300),
            file_bytes=decades(10e3, 20e6),
        )
        for _ in range(count)
    ]


def every_cell(quick: bool) -> Sequence[Transfer]:
    """Return all cells; `quick` has one KByte and a fifth of the networks."""
    chosen = [
        *figures_5_and_6(KBYTES[:1] if quick else KBYTES),
        *(each for short, whole in short_and_long_cells().values() for each in (*short, whole)),
        *lossy_cells().values(),
        *random_cells(RANDOM_NETWORKS // 5 if quick else RANDOM_NETWORKS),
    ]
    for network in (SYMMETRIC, ASYMMETRIC):
        chosen += vsat_cells(network, timed=False) + vsat_cells(network, timed=True)
    for network in saturation_networks().values():
        chosen += [each for pair in saturation_cells(network).values() for each in pair]
    return list(dict.fromkeys(chosen))


def _time(seconds: float) -> str:
    # Whole microseconds, without rounding errors of floats.
    return f"{round(seconds * 1e6)} us"
