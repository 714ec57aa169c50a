"""The runs of vanzara2014, and additional ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bentpipe.scenario import Scenario

_FOLDER: Final = Path(__file__).parent
FLOW: Final = "transfer"
# The paper counts "correctly received bits": what arrives, in order or not.
RECEIVED: Final = f"{FLOW}.received"
WINDOW: Final = f"{FLOW}.congestion_window"

# Section IV.A.
LINK_BPS: Final = 100_000_000
ROUND_TRIP_MS: Final = 600
PACKET_BYTES: Final = 1500
PAYLOAD_BYTES: Final = 1448
DURATION_S: Final = 600
# The link's rate of payload without errors: 96.5 Mbit/s.
CAPACITY_BPS: Final = LINK_BPS * PAYLOAD_BYTES / PACKET_BYTES
PIPE_PACKETS: Final = LINK_BPS * ROUND_TRIP_MS // (1000 * 8 * PACKET_BYTES)
# The figures have a point every 10 s; the time to reach a rate has a resolution of 1 s.
POINTS_S: Final = 10
SAMPLES_S: Final = 1

# The paper's three rules, then those that we compare Enhanced Hybla with.
RULES: Final = ("hybla", "westwood", "enhanced-hybla")
OTHER_RULES: Final = ("westwood-2001", "cubic", "reno", "bbr1", "bbr3")
NAMES: Final = {
    "hybla": "Hybla",
    "westwood": "Westwood+",
    "westwood-2001": "Westwood of 2001",
    "enhanced-hybla": "Enhanced Hybla",
    "cubic": "CUBIC",
    "reno": "Reno",
    "bbr1": "BBR 1",
    "bbr3": "BBR 3",
}

# Figures 2 to 6.
FIGURES_2_TO_6: Final = {"2": 0.0, "3": 1e-8, "4": 1e-7, "5": 1e-6, "6": 1e-5}
RATES: Final = tuple(FIGURES_2_TO_6.values())
# Figure 7.
FIGURE_7_RATE: Final = 1e-8
FIGURE_7_ROUND_TRIPS_MS: Final = (100, 200, 300, 400, 500, 600)
# Figure 8: "10^-10 or less", and up to figure 6's.
FIGURE_8_RATES: Final = (1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5)
# Figures 9 to 11: "50 KB to 2 GB". 100 MB, 500 MB, 1 GB and 2 GB are in the text.
FILES: Final = {"9": 0.0, "10": 1e-8, "11": 1e-7}
FILE_BYTES: Final = (
    50_000,
    500_000,
    5_000_000,
    50_000_000,
    100_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
)

# Sizes for which the text gives Enhanced Hybla's goodput.
LARGE_FILE_BYTES: Final = FILE_BYTES[-3:]

SEEDS: Final = (1, 2, 3, 4, 5)
# A file up to this size meets few errors, or none: its median needs more seeds.
SMALL_FILE_BYTES: Final = 5_000_000
SMALL_FILE_SEEDS: Final = tuple(range(1, 25))
# With ten errors expected, one run in e^10 meets none.
MOST_SPARED: Final = 10.0
QUICK_SEEDS: Final = (1, 2)
# Wrong capacities for Enhanced Hybla, as shares of the link's rate.
WRONG_CAPACITIES: Final = (0.5, 0.8, 1.2, 2.0)
FLOW_COUNTS: Final = (2, 4, 6, 10)
CONTESTS: Final = (
    ("enhanced-hybla", "reno"),
    ("enhanced-hybla", "cubic"),
    ("hybla", "cubic"),
    ("cubic", "reno"),
    # Controls: rivals of the same kind.
    ("reno", "reno"),
    ("cubic", "cubic"),
)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Parameters that the paper does not state.

    `threshold` is the window at which slow start first ends:

    - "pipe": one bandwidth-delay product, the result of an exact initial estimate of the bandwidth.
    - "estimate": Hoe's estimate from the spacing of the first ACKs, for Hybla and Enhanced Hybla.
    - A number of segments, or "none".

    Westwood has no threshold with "estimate". The paper does not state Westwood's window after a
    loss; the default is that of the tool that it used, ns-2's TCP-Linux. Its reference for Westwood
    is the rule of 2001, "westwood-2001"; the tool has Westwood+, "westwood".
    """

    queue_packets: int = 20_000
    delayed_ack_ms: int = 0
    recovery: str = "sack"
    threshold: str = "pipe"
    after_loss: str = "quarter"
    after_timeout: str = "rho"
    westwood_rule: str = "westwood"
    westwood_after_loss: str = "at-least-half"
    westwood_filter: str = "westwood"
    channel_capacity_bps: int = LINK_BPS
    capacity_from: str = "configured"
    bandwidth_filter: str = "last-sample"
    rack: bool = True
    proportional_rate_reduction: bool = False
    profile: str = "rfc"

    def of(self, rule: str, bit_error_rate: float) -> Setting:
        """Return the setting without parameters that the rule ignores, to share equal runs."""
        setting = self
        if rule != "enhanced-hybla":
            setting = replace(
                setting,
                channel_capacity_bps=MAIN.channel_capacity_bps,
                capacity_from=MAIN.capacity_from,
                bandwidth_filter=MAIN.bandwidth_filter,
            )
        if rule != "hybla":
            setting = replace(setting, after_loss=MAIN.after_loss, after_timeout=MAIN.after_timeout)
        if rule != "westwood":
            setting = replace(
                setting,
                westwood_rule=MAIN.westwood_rule,
                westwood_after_loss=MAIN.westwood_after_loss,
                westwood_filter=MAIN.westwood_filter,
            )
        elif bit_error_rate == 0.0 and setting.keeps_within_the_queue:
            setting = replace(
                setting,
                queue_packets=MAIN.queue_packets,
                recovery=MAIN.recovery,
                rack=MAIN.rack,
                proportional_rate_reduction=MAIN.proportional_rate_reduction,
                westwood_rule=MAIN.westwood_rule,
                westwood_after_loss=MAIN.westwood_after_loss,
                westwood_filter=MAIN.westwood_filter,
            )
        return setting

    @property
    def keeps_within_the_queue(self) -> bool:
        """Whether Westwood loses nothing where nothing is in error.

        With a threshold of at most one bandwidth-delay product, a queue of one product holds all of
        the window. From there on, the window gains a segment a round trip, a fifth of the product
        in ten minutes. The reaction to a loss and a longer queue therefore do not matter.
        """
        return self.threshold == "pipe" and self.queue_packets >= PIPE_PACKETS

    def as_far_as_used(self, bit_error_rate: float) -> Setting:
        """Return the setting without Enhanced Hybla's link parameters that have no effect.

        Without errors, only packets that exceed the queue are lost. Then the queue is full, and the
        threshold is three quarters of the data in flight (section III.B), unless the term of CC is
        larger: (CC - BWE) RTTmin. BWE RTTmin is at most one bandwidth-delay product.
        """
        worth_packets = self.channel_capacity_bps * PIPE_PACKETS / LINK_BPS
        if bit_error_rate > 0.0 or max(worth_packets, PIPE_PACKETS) > self.queue_packets / 2:
            return self
        return replace(
            self,
            channel_capacity_bps=MAIN.channel_capacity_bps,
            bandwidth_filter=MAIN.bandwidth_filter,
        )

    def as_keys(self, rule: str, round_trip_ms: int) -> dict[str, object]:
        """Return the setting as keys of the scenario."""
        tcp = "hosts.server.tcp"
        keys: dict[str, object] = {
            "links.satellite.forward.queue.limit": f"{self.queue_packets} packets",
            "hosts.client.tcp.delayed_ack": f"{self.delayed_ack_ms} ms"
            if self.delayed_ack_ms
            else "off",
            f"{tcp}.recovery": self.recovery,
            f"{tcp}.channel_capacity": f"{self.channel_capacity_bps} bit/s",
            f"{tcp}.profile": self.profile,
        }
        if rule == "enhanced-hybla":
            keys[f"{tcp}.bandwidth_filter"] = self.bandwidth_filter
            keys[f"{tcp}.hybla.channel_capacity"] = self.capacity_from
        if self.threshold == "estimate":
            # Westwood ignores this key: its run equals the one without a threshold.
            if rule != "westwood":
                keys[f"{tcp}.hybla.initial_threshold"] = "bandwidth-estimate"
        elif self.threshold != "none":
            pipe = PIPE_PACKETS * round_trip_ms // ROUND_TRIP_MS
            segments = pipe if self.threshold == "pipe" else int(self.threshold)
            keys[f"{tcp}.initial_slow_start_threshold"] = f"{segments} segments"
        if self.recovery == "sack" and not self.rack:
            keys[f"{tcp}.rack"] = False
        if self.proportional_rate_reduction:
            keys[f"{tcp}.proportional_rate_reduction"] = True
        if rule == "westwood":
            keys[f"{tcp}.congestion_control"] = self.westwood_rule
            keys[f"{tcp}.bandwidth_filter"] = self.westwood_filter
            keys[f"{tcp}.westwood.after_loss"] = self.westwood_after_loss
        elif rule == "westwood-2001":
            # As in its paper. satellite.toml has the response of ns-2's TCP-Linux.
            keys[f"{tcp}.westwood.after_loss"] = "pipe"
        if rule == "hybla":
            keys[f"{tcp}.hybla.after_loss"] = self.after_loss
            keys[f"{tcp}.hybla.after_timeout"] = self.after_timeout
        else:
            keys[f"{tcp}.hybla.after_loss"] = "half"
            keys[f"{tcp}.hybla.after_timeout"] = "one-segment"
        return keys


MAIN: Final = Setting()
# The second reading of CC: uplink and downlink together ("100 Mbps link of uplink and downlink").
BOTH_DIRECTIONS: Final = replace(MAIN, channel_capacity_bps=2 * LINK_BPS)
# Nothing about the link is configured. Section V leaves the start to future work.
ESTIMATED: Final = replace(MAIN, threshold="estimate", capacity_from="packet-pairs")


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """One connection over the satellite link: a file, or ten minutes."""

    rule: str
    bit_error_rate: float
    seed: int = 1
    round_trip_ms: int = ROUND_TRIP_MS
    file_bytes: int | None = None
    setting: Setting = MAIN

    def scenario(self) -> Scenario:
        """Return the transfer as a scenario, without parameters that have no effect in it.

        If no bit error happens, the scenario is the one without errors.
        """
        setting = self.setting.as_far_as_used(self.bit_error_rate)
        keys: dict[str, object] = {
            "seed": self.seed,
            "hosts.server.tcp.congestion_control": self.rule,
            "links.satellite.delay": f"{self.round_trip_ms * 500} us",
            "links.satellite.forward.errors.bit_error_rate": self.bit_error_rate,
            **setting.as_keys(self.rule, self.round_trip_ms),
        }
        if self.file_bytes is None:
            series = [RECEIVED]
            if self.rule == "enhanced-hybla":
                series.append(WINDOW)
            keys["probes.series"] = series
            keys["probes.interval"] = f"{SAMPLES_S} s"
        else:
            keys["flows.transfer.app.size"] = f"{self.file_bytes} B"
            # The run ends with the transfer.
            keys["duration"] = "24 h"
        scenario = Scenario(path=_FOLDER / "satellite.toml").with_settings(keys)
        if self._may_be_spared_errors and not scenario.may_meet_errors():
            return replace(self, bit_error_rate=0.0, seed=SEEDS[0]).scenario()
        return scenario

    @property
    def _may_be_spared_errors(self) -> bool:
        """Return whether the run may be free of errors: few are expected in ten minutes."""
        expected = self.bit_error_rate * LINK_BPS * DURATION_S
        return self.file_bytes is None and 0.0 < expected < MOST_SPARED


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Flows of two window rules, equally many of each, over one link."""

    subject: str
    rival: str
    flows: int
    seed: int = 1

    def scenario(self) -> Scenario:
        """Return the contest as a scenario."""
        half = self.flows // 2
        return Scenario(path=_FOLDER / "shared.toml").with_settings(
            {
                "seed": self.seed,
                "hosts.subject.count": half,
                "hosts.rival.count": half,
                "hosts.subject.tcp.congestion_control": self.subject,
                "hosts.rival.tcp.congestion_control": self.rival,
                "hosts.subject.tcp.recovery": MAIN.recovery,
                "hosts.rival.tcp.recovery": MAIN.recovery,
            }
        )


StudyCell = Transfer | Contest


def seeds(bit_error_rate: float, chosen: Sequence[int]) -> Sequence[int]:
    """Return one seed if nothing is random, else the chosen ones."""
    return chosen if bit_error_rate > 0 else chosen[:1]


def over_seeds(transfer: Transfer, chosen: Sequence[int]) -> list[Transfer]:
    """Return the transfer with each seed."""
    return [replace(transfer, seed=seed) for seed in seeds(transfer.bit_error_rate, chosen)]


def _grid(
    rules: Iterable[str],
    rates: Iterable[float],
    chosen: Sequence[int],
    *,
    setting: Setting = MAIN,
) -> list[Transfer]:
    rates = tuple(rates)
    return [
        cell
        for rule in rules
        for rate in rates
        for cell in over_seeds(
            Transfer(rule=rule, bit_error_rate=rate, setting=setting.of(rule, rate)), chosen
        )
    ]


def _seeds_of_file(size: int, fewer: Sequence[int]) -> Sequence[int]:
    """Return the seeds of a file: more for a small one, unless the run is quick."""
    if len(fewer) >= len(SEEDS) and size <= SMALL_FILE_BYTES:
        return SMALL_FILE_SEEDS
    return fewer


def wrong_capacity(factor: float) -> Setting:
    """Return the main setting with a wrong capacity."""
    return replace(MAIN, channel_capacity_bps=round(LINK_BPS * factor))


def with_capacity_share(factor: float, rate: float) -> Transfer:
    """Return ten minutes of Enhanced Hybla with this share of the capacity as its parameter."""
    setting = MAIN if factor == 1.0 else wrong_capacity(factor)
    return Transfer(rule="enhanced-hybla", bit_error_rate=rate, setting=setting)


def every_cell(quick: bool) -> list[StudyCell]:
    """Return every run of the study; `quick` has fewer seeds and fewer points."""
    if quick:
        return _every_cell(
            QUICK_SEEDS,
            low_rates=(1e-10,),
            round_trips_ms=(100, 300),
            sizes=(50_000, 5_000_000, 100_000_000, 500_000_000, 2_000_000_000),
            wrong_rates=(0.0, 1e-6),
            flow_counts=FLOW_COUNTS[:1],
        )
    return _every_cell(
        SEEDS,
        low_rates=[rate for rate in FIGURE_8_RATES if rate not in RATES],
        round_trips_ms=FIGURE_7_ROUND_TRIPS_MS,
        sizes=FILE_BYTES,
        wrong_rates=RATES,
        flow_counts=FLOW_COUNTS,
    )


def _every_cell(
    chosen: Sequence[int],
    *,
    low_rates: Sequence[float],
    round_trips_ms: Sequence[int],
    sizes: Sequence[int],
    wrong_rates: Sequence[float],
    flow_counts: Sequence[int],
) -> list[StudyCell]:
    # In the order of the figures: each is drawn while the runs of the next are simulated. Beside
    # the paper's time series, a quick run has one seed of everything.
    fewer = chosen if len(chosen) >= len(SEEDS) else chosen[:1]
    cells: list[StudyCell] = [
        *_grid(RULES, RATES, chosen),
        *_grid(("enhanced-hybla",), RATES, fewer, setting=BOTH_DIRECTIONS),
        *_grid(RULES, low_rates, fewer),
    ]
    for rule in RULES:
        for round_trip_ms in round_trips_ms:
            transfer = Transfer(
                rule=rule, bit_error_rate=FIGURE_7_RATE, round_trip_ms=round_trip_ms
            )
            cells += over_seeds(transfer, fewer)
        for rate in FILES.values():
            for size in sizes:
                transfer = Transfer(rule=rule, bit_error_rate=rate, file_bytes=size)
                cells += over_seeds(transfer, _seeds_of_file(size, fewer))
    for rate in FILES.values():
        for size in LARGE_FILE_BYTES:
            cells += over_seeds(
                Transfer(
                    rule="enhanced-hybla",
                    bit_error_rate=rate,
                    file_bytes=size,
                    setting=BOTH_DIRECTIONS,
                ),
                fewer,
            )
    cells += _grid(OTHER_RULES, RATES, fewer)
    cells += _grid(("enhanced-hybla",), RATES, fewer, setting=ESTIMATED)
    for factor in WRONG_CAPACITIES:
        setting = wrong_capacity(factor)
        cells += _grid(("enhanced-hybla",), wrong_rates, fewer[:3], setting=setting)
    for subject, rival in CONTESTS:
        cells += [Contest(subject=subject, rival=rival, flows=flows) for flows in flow_counts]
    return list(dict.fromkeys(cells))
