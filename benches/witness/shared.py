"""Compare ns-2 and bentpipe: flows that share a bottleneck, and slow modems as return links.

The question is whether differences are systematic (bias) or sensitivity to details (chaos).

`cells.py` prints the table of these cells, and `docs/validation/ns2.md` explains it. Every cell is
run several times in both programs. The starts are moved by no more than the time of a segment at
the bottleneck, and random draws have another seed. A difference between the programs that is no
larger than the differences among runs of either is chaos. A difference that remains in the mean
over all cells is bias.

As a script, `shared.py KIND NUMBER ...` prints the first packets at the bottleneck that differ: `+`
is a segment, `-` an acknowledgment.
"""

from __future__ import annotations

import argparse
import random
import statistics
import struct
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ns2

import bentpipe

SCRIPT = Path(__file__).with_suffix(".tcl")
PACKET_BYTES = 1500
KINDS = (
    "shared",
    "shared, gently",
    "shared RED",
    "shared ECN",
    "modem return",
    "hybla",
    "westwood",
    "any",
)
# Recovery as in TCP-Linux, which also detects lost retransmissions: linux_tcp.md.
TCP_LINUX: dict[str, Any] = {
    "recovery": "sack",
    "rack": True,
    "window_validation": True,
    "limited_transmit": False,
}
# Counting of acknowledgments and response to losses as in the modules of Linux 2.6.22. (Hybla's
# window is halved by a recovery, whatever the module requests.)
MODULES: dict[str, dict[str, Any]] = {
    "hybla": {
        "congestion_avoidance": "per-acknowledgment",
        "hybla": {"after_loss": "half"},
    },
    "westwood": {
        "congestion_avoidance": "byte-counting",
        "westwood": {"after_loss": "at-least-half"},
    },
}
# Reference RTTs of rho. The second is for longer paths, where the module's 2^rho, in 128ths, would
# not fit into 32 bits.
RTT0_MS = 25
LONG_RTT0_MS = 40
# Runs of each cell in each program.
RUNS = 6
TOLERANCE = 0.02


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Flows from as many servers to as many clients. Units as in `cells.py`.

    Queue limits include the packet in transmission. The name `variant` is ns-2's agent, or "hybla"
    or "westwood" for its TCP-Linux. The list `lost` has data packets by their order on the
    bottleneck, from 0.
    """

    variant: str
    rate_bps: int
    delay_s: float
    back_bps: int
    back_delay_s: float
    delayed_ack_s: float
    window_segments: int
    initial_window: int
    starts_s: tuple[float, ...]
    access_delays_s: tuple[float, ...]
    queue_packets: int
    duration_s: float
    back_queue_packets: int = ns2.LONG_QUEUE_PACKETS
    red: tuple[int, int] | None = None
    # RED marks instead of dropping, and senders use ECN.
    ecn: bool = False
    threshold_segments: int = 100_000
    lost: tuple[int, ...] = ()
    limited_transmit: bool = True
    # The next sample resets ns-2's backed-off timer, as in bentpipe.
    reset_rto: bool = False
    rtt0_ms: int = RTT0_MS


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Results of a run: segments in order by flow, and drops at both queues."""

    segments: tuple[int, ...]
    drops: int
    back_drops: int
    timeouts: int

    @property
    def total(self) -> int:
        """Return the segments of all flows."""
        return sum(self.segments)

    @property
    def fairness(self) -> float:
        """Return Jain's index of the flows' shares."""
        squares = sum(each * each for each in self.segments)
        return self.total**2 / (len(self.segments) * squares) if squares else 1.0


def cell(kind: str, number: int) -> Cell:
    """Return a random cell of this kind, always the same for a number."""
    if kind == "any":
        return _any(number)
    draw = random.Random(f"{kind} {number}")
    choose = draw.choice
    flows = draw.randint(2, 10) if kind.startswith("shared") else 1
    rate = choose([64_000, 256_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000])
    delay = choose([0.005, 0.05, 0.1, 0.27, 0.4])
    long_enough = _long_enough_s(rate, delay)
    spread = min(2.0, long_enough / 10)
    drawn = Cell(
        variant=choose(list(ns2.RECOVERIES)),
        rate_bps=rate,
        delay_s=delay,
        back_bps=max(rate, 64_000),
        back_delay_s=delay,
        delayed_ack_s=choose([0, 0.1, 0.2]),
        window_segments=1000,
        initial_window=choose([1, 2, 4, 10]),
        starts_s=tuple(round(draw.uniform(0, spread), 6) for _ in range(flows)),
        access_delays_s=tuple(round(draw.uniform(0.001, 0.02), 6) for _ in range(flows)),
        queue_packets=choose([10, 30, 60, 120]),
        duration_s=round(long_enough, 3),
    )
    if kind in {"shared, gently", "shared RED", "shared ECN"}:
        # Slow start ends at once, so that no flow loses most of a window. Otherwise the threshold
        # left by a timeout in that recovery (docs/validation/ns2.md) would hide other differences.
        drawn = replace(drawn, threshold_segments=4, duration_s=4 * drawn.duration_s)
    if kind in {"shared RED", "shared ECN"}:
        # The paper's thresholds, one to three; the queue is almost never full.
        least = choose([5, 10, 20])
        red = (least, 3 * least)
        return replace(drawn, red=red, queue_packets=400, ecn=kind == "shared ECN")
    if kind == "modem return":
        # Segments at best: a data packet takes as long as two acknowledgments or fewer.
        return replace(
            drawn,
            rate_bps=max(rate, 256_000),
            back_bps=choose([9_600, 14_400, 28_800, 33_600, 64_000]),
            back_queue_packets=choose([5, 10, 20]),
            queue_packets=choose([30, 60, 120]),
            window_segments=choose([20, 60, 200]),
            duration_s=max(drawn.duration_s, 100.0),
        )
    if kind in {"hybla", "westwood"}:
        rate = max(rate, 2_000_000)
        share = choose([0.0003, 0.001, 0.003])
        duration = round(max(60.0, 80 * (delay + 0.01)), 3)
        most = int(duration * rate / 8 / PACKET_BYTES)
        lost = tuple(n for n in range(20, most) if draw.random() < share)
        return replace(
            drawn,
            variant=kind,
            rate_bps=rate,
            back_bps=rate,
            lost=lost,
            duration_s=duration,
            queue_packets=ns2.LONG_QUEUE_PACKETS,
            window_segments=65_535,
            threshold_segments=60,
            rtt0_ms=RTT0_MS if delay < 0.3 else LONG_RTT0_MS,
        )
    return drawn


def _long_enough_s(rate_bps: int, delay_s: float) -> float:
    """Return the duration of forty round trips, and at least of a thousand segments."""
    return max(80 * (delay_s + 0.01), 1000 * 8 * PACKET_BYTES / rate_bps)


def _any(number: int) -> Cell:
    """Return a cell with all variations: flows, queues, returns, losses, windows."""
    draw = random.Random(f"fresh numbers {number}")
    choose = draw.choice
    flows = choose([1, 1, 2, 3, 5, 8, 12, 20])
    rate = choose([64_000, 128_000, 512_000, 1_000_000, 2_000_000, 8_000_000])
    delay = choose([0.005, 0.02, 0.06, 0.13, 0.27, 0.4])
    long_enough = _long_enough_s(rate, delay)
    modem = draw.random() < 0.3
    back = choose([9_600, 19_200, 33_600, 64_000]) if modem else max(rate, 64_000)
    lost: tuple[int, ...] = ()
    if draw.random() < 0.3:
        share = choose([0.001, 0.005, 0.02])
        most = int(long_enough * rate / 8 / PACKET_BYTES)
        lost = tuple(n for n in range(20, most) if draw.random() < share)
    return Cell(
        variant=choose(list(ns2.RECOVERIES)),
        rate_bps=rate,
        delay_s=delay,
        back_bps=back,
        back_delay_s=delay,
        delayed_ack_s=choose([0, 0.1, 0.2]),
        window_segments=choose([20, 100, 1000]),
        initial_window=choose([1, 2, 4, 10]),
        starts_s=tuple(round(draw.uniform(0, min(2.0, long_enough / 10)), 6) for _ in range(flows)),
        access_delays_s=tuple(
            round(draw.uniform(0.001, choose([0.02, 0.2])), 6) for _ in range(flows)
        ),
        queue_packets=choose([2, 3, 5, 10, 20, 50, 100, 200]),
        duration_s=round(long_enough, 3),
        back_queue_packets=choose([5, 10, 20, 50]) if modem else ns2.LONG_QUEUE_PACKETS,
        threshold_segments=choose([4, 20, 100_000]),
        lost=lost,
        reset_rto=True,
    )


def moved(of: Cell, run: int) -> Cell:
    """Return the cell with its starts moved, differently for each run; unchanged for run 0."""
    if run == 0:
        return of
    draw = random.Random(run)
    most = 8 * PACKET_BYTES / of.rate_bps
    return replace(of, starts_s=tuple(each + draw.uniform(0, most) for each in of.starts_s))


def _options(of: Cell, *, trace: bool, seed: int) -> dict[str, object]:
    def listed(values: Iterable[float]) -> str:
        return " ".join(f"{each:.9f}" for each in values)

    linux = of.variant not in ns2.RECOVERIES
    options: dict[str, object] = {
        name: getattr(of, name)
        for name in (
            "rate_bps",
            "delay_s",
            "back_bps",
            "back_delay_s",
            "queue_packets",
            "back_queue_packets",
            "delayed_ack_s",
            "window_segments",
            "initial_window",
            "duration_s",
        )
    }
    options |= {
        "variant": "Linux" if linux else of.variant,
        "threshold_segments": min(of.threshold_segments, of.window_segments),
        "starts_s": listed(of.starts_s),
        "access_delays_s": listed(of.access_delays_s),
        # The SYN, which TCP-Linux lacks, is the first packet.
        "lost": " ".join(str(number + (not linux)) for number in of.lost),
        "seed": seed,
        "limited_transmit": int(of.limited_transmit),
        "reset_rto": int(of.reset_rto or linux),
        "trace": int(trace),
    }
    if linux:
        # TCP-Linux has no handshake: it begins when bentpipe's is over.
        handshake = 8 * (60 / of.rate_bps + 60 / of.back_bps + 2 * 120 / 100e6)
        trip = 2 * 0.001 + of.delay_s + of.back_delay_s + handshake
        options |= {
            "congestion_control": of.variant,
            "rtt0_ms": of.rtt0_ms,
            "starts_s": listed(
                start + 2 * access + trip
                for start, access in zip(of.starts_s, of.access_delays_s, strict=True)
            ),
        }
    if of.red is not None:
        options |= {"red_minimum": of.red[0], "red_maximum": of.red[1], "ecn": int(of.ecn)}
    return options


def in_ns2(of: Cell, *, seed: int = 1) -> Outcome:
    """Return the results of a cell in ns-2."""
    segments, timeouts, drops = [], 0, (0, 0)
    for line in ns2.run(SCRIPT, _options(of, trace=False, seed=seed)).splitlines():
        word, *fields = line.split()
        if word == "flow":
            segments.append(int(fields[0]))
            timeouts += int(fields[2])
        elif word == "drops":
            drops = (int(fields[0]), int(fields[1]))
    return Outcome(segments=tuple(segments), drops=drops[0], back_drops=drops[1], timeouts=timeouts)


def scenario(of: Cell) -> dict[str, Any]:
    """Return the cell as a scenario."""
    linux = of.variant not in ns2.RECOVERIES
    sack = linux or of.variant == "Sack1"
    sender = ns2.sender(
        recovery="sack" if linux else ns2.RECOVERIES[of.variant],
        congestion_control=of.variant if linux else "reno",
        initial_window=of.initial_window,
        threshold_segments=min(of.threshold_segments, of.window_segments),
        minimum_rto_s=1.0,
    )
    sender["limited_transmit"] = of.limited_transmit
    sender["ecn"] = "request" if of.ecn else "off"
    # linux_tcp.md describes TCP-Linux; for example, it ignores the receiver's window.
    if linux:
        sender |= TCP_LINUX | MODULES[of.variant]
    if of.variant == "hybla":
        sender["hybla"] = {"reference_rtt": f"{of.rtt0_ms} ms", **sender["hybla"]}
    window = ns2.LONG_QUEUE_PACKETS if linux else of.window_segments
    client = ns2.receiver(sack=sack, delayed_ack_s=of.delayed_ack_s, window_segments=window)
    queue: dict[str, Any] = {"limit": f"{of.queue_packets - 1} packets"}
    if of.red is not None:
        queue |= {
            "kind": "red",
            "minimum_threshold": f"{of.red[0]} packets",
            "maximum_threshold": f"{of.red[1]} packets",
            "maximum_probability": 0.1,
            "weight": 0.002,
            "mean_packet": f"{PACKET_BYTES} B",
            "ecn": of.ecn,
        }
    forward: dict[str, Any] = {
        "rate": f"{of.rate_bps} bit/s",
        "delay": f"{of.delay_s} s",
        "queue": queue,
    }
    if of.lost:
        # Numbers start at 1, after the SYN and the handshake's last acknowledgment.
        forward["errors"] = {"lost_packets": [number + 3 for number in of.lost]}
    back = {
        "rate": f"{of.back_bps} bit/s",
        "delay": f"{of.back_delay_s} s",
        "queue": {"limit": f"{of.back_queue_packets - 1} packets"},
    }
    long = {"queue": {"limit": f"{ns2.LONG_QUEUE_PACKETS} packets"}}
    hosts, flows = {}, {}
    links: dict[str, Any] = {
        "bottleneck": {"between": ["near", "far"], "forward": forward, "return": back}
    }
    for number, (start, access) in enumerate(zip(of.starts_s, of.access_delays_s, strict=True)):
        from_, to = f"server-{number}", f"client-{number}"
        hosts |= {from_: {"tcp": sender}, to: {"tcp": client}}
        links[f"access-{number}"] = {
            "between": [from_, "near"],
            "rate": "100 Mbit/s",
            "delay": f"{access:.9f} s",
            **long,
        }
        links[f"home-{number}"] = {
            "between": ["far", to],
            "rate": "100 Mbit/s",
            "delay": "1 ms",
            **long,
        }
        flows[f"flow-{number}"] = {
            "from": from_,
            "to": to,
            "start": f"{start:.9f} s",
            "app": {"kind": "bulk"},
        }
    return {
        "name": "cell",
        "duration": f"{of.duration_s} s",
        "hosts": hosts,
        "gateways": {"near": {}, "far": {}},
        "links": links,
        "flows": flows,
    }


def here(of: Cell, *, seed: int = 1) -> Outcome:
    """Return the results of a cell in bentpipe."""
    summary = bentpipe.run(scenario(of), seed=seed, no_probes=True).summary
    links = {each.name: each for each in summary.links}
    return Outcome(
        segments=tuple(each.bytes_delivered // ns2.SEGMENT_BYTES for each in summary.flows),
        drops=links["bottleneck.forward"].packets_dropped,
        back_drops=links["bottleneck.return"].packets_dropped,
        timeouts=sum(each.timeouts for each in summary.flows),
    )


def spread(runs: tuple[Outcome, ...]) -> float:
    """Return the standard deviation of a program's runs, relative to their mean."""
    totals = [each.total for each in runs]
    return statistics.stdev(totals) / statistics.mean(totals)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Runs of a cell in ns-2 and in bentpipe, in the same order."""

    cell: Cell
    number: int
    ns2: tuple[Outcome, ...]
    here: tuple[Outcome, ...]

    @property
    def exact(self) -> bool:
        """Return whether the unmoved cell has the same results in both programs."""
        return self.ns2[0] == self.here[0]

    @property
    def first(self) -> float:
        """Return how much more arrives in bentpipe in the unmoved cell, relative to ns-2."""
        return self.here[0].total / self.ns2[0].total - 1

    @property
    def mean(self) -> float:
        """Return how much more arrives in bentpipe in the mean over all runs, relative to ns-2."""
        return sum(each.total for each in self.here) / sum(each.total for each in self.ns2) - 1

    @property
    def fairness(self) -> float:
        """Return how much higher Jain's index is in bentpipe, on average."""
        ours, theirs = (
            statistics.mean(run.fairness for run in runs) for runs in (self.here, self.ns2)
        )
        return ours - theirs

    @property
    def chaotic(self) -> bool:
        """Return whether the difference exceeds 2%, but not that among runs of either program."""
        deviation = (spread(self.ns2) ** 2 + spread(self.here) ** 2) ** 0.5
        return TOLERANCE < abs(self.first) <= 2 * deviation


def compare(kind: str, numbers: Iterable[int], runs: int = RUNS) -> Iterator[Comparison]:
    """Run cells in both programs."""

    def both(number: int) -> Comparison:
        of = cell(kind, number)
        # RED draws random numbers: its runs differ by seed instead.
        cells = [(moved(of, run), run + 1) for run in range(runs)]
        return Comparison(
            cell=of,
            number=number,
            ns2=tuple(in_ns2(each, seed=seed) for each, seed in cells),
            here=tuple(here(each, seed=seed) for each, seed in cells),
        )

    with ThreadPoolExecutor() as pool:
        yield from pool.map(both, numbers)


def bias(values: list[float]) -> tuple[float, float]:
    """Return the mean over cells, and its standard error."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return statistics.mean(values), error


def table(kind: str, count: int) -> Iterator[str]:
    """Compare cells of a kind: two lines for each recovery or window rule."""
    found = list(compare(kind, range(count)))
    for variant in dict.fromkeys(each.cell.variant for each in found):
        of = [each for each in found if each.cell.variant == variant]
        exact = sum(each.exact for each in of)
        near = sum(abs(each.first) <= TOLERANCE for each in of)
        chaos = sum(each.chaotic for each in of)
        mean, error = bias([each.mean for each in of])
        fairness, fairness_error = bias([each.fairness for each in of])
        theirs = statistics.median(spread(each.ns2) for each in of)
        ours = statistics.median(spread(each.here) for each in of)
        counts = {
            name: tuple(
                sum(getattr(run, name) for each in of for run in getattr(each, program))
                for program in ("here", "ns2")
            )
            for name in ("drops", "back_drops", "timeouts")
        }
        yield (
            f"{kind:14} {variant:8} {len(of):4} cells, {exact:3} exact, {near:3} within 2%,"
            f" {chaos:3} more within two deviations, mean {mean:+.2%} ± {error:.2%},"
            f" Jain {fairness:+.4f} ± {fairness_error:.4f}"
        )
        yield (
            f"{'':14} spread {theirs:.2%} in ns-2, {ours:.2%} here;"
            + ",".join(f" {name} {here} ({in_ns2})" for name, (here, in_ns2) in counts.items())
        )


@dataclass(frozen=True, kw_only=True)
class Event:
    """A packet at the near end of the bottleneck: departing data of a flow, or its acknowledgment.

    Segments count from 1. An acknowledgment's number is that of the last segment it covers.
    """

    time_s: float
    flow: int
    data: bool
    segment: int


def events_in_ns2(of: Cell) -> list[Event]:
    """Return the packets that cross the bottleneck in ns-2, in both directions."""
    found = []
    for line in ns2.run(SCRIPT, _options(of, trace=True, seed=1)).splitlines():
        event, *fields = line.split()
        if (event, *fields[1:3]) in {("-", "0", "1"), ("r", "1", "0")}:
            segment = int(fields[9]) + (of.variant not in ns2.RECOVERIES)
            # Leaves out SYNs and their acknowledgments.
            if segment > 0:
                data = event == "-"
                time_s, flow = float(fields[0]), int(fields[6])
                found.append(Event(time_s=time_s, flow=flow, data=data, segment=segment))
    return found


def events_here(of: Cell) -> list[Event]:
    """Return the packets that cross the bottleneck in bentpipe, from a capture."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bottleneck.pcapng"
        bentpipe.run(scenario(of), no_probes=True, pcap=[("bottleneck", file)])
        capture = file.read_bytes()
    found: list[Event] = []
    # Initial sequence numbers by the senders' addresses, in the order of the flows' starts.
    order = sorted(range(len(of.starts_s)), key=lambda n: of.starts_s[n] + of.access_delays_s[n])
    begun: dict[int, tuple[int, int]] = {}
    place = 0
    while place < len(capture):
        kind, length = struct.unpack_from("<II", capture, place)
        # An enhanced packet block. Its packet begins with an IPv4 header of 20 bytes.
        if kind == 6:
            high, low = struct.unpack_from("<II", capture, place + 12)
            packet = place + 28
            (size,) = struct.unpack_from(">H", capture, packet + 2)
            addresses = struct.unpack_from(">II", capture, packet + 12)
            numbers = struct.unpack_from(">II", capture, packet + 24)
            header = 20 + (capture[packet + 32] >> 4) * 4
            syn = bool(capture[packet + 33] & 2)
            # The server opened the connection from an ephemeral port.
            (port,) = struct.unpack_from(">H", capture, packet + 20)
            data = port >= 0xC000
            if data and syn and addresses[0] not in begun:
                begun[addresses[0]] = (order[len(begun)], numbers[0])
            flow, first = begun[addresses[0 if data else 1]]
            # Leaves out SYNs and the handshake's last acknowledgment, which ns-2 lacks.
            number = (numbers[0 if data else 1] - first - 1) % 2**32 // ns2.SEGMENT_BYTES
            segment = number + data
            if not syn and segment > 0 and (not data or size > header):
                time_s = (high << 32 | low) / 1e9
                found.append(Event(time_s=time_s, flow=flow, data=data, segment=segment))
        place += length
    return found


def first_difference(of: Cell, *, context: int = 12) -> list[str]:
    """Return where both traces first differ, and the packets of that flow around it."""
    theirs, ours = events_in_ns2(of), events_here(of)
    # A few packets more or fewer ahead in the queue do not count as a difference.
    late = 16 * PACKET_BYTES / of.rate_bps + 0.1 * (of.delay_s + of.back_delay_s)
    places = []
    for flow in range(len(of.starts_s)):
        for data in (True, False):
            pairs = zip(
                [each for each in theirs if (each.flow, each.data) == (flow, data)],
                [each for each in ours if (each.flow, each.data) == (flow, data)],
                strict=False,
            )
            for pair in pairs:
                if (
                    pair[0].segment != pair[1].segment
                    or abs(pair[0].time_s - pair[1].time_s) > late
                ):
                    places.append((min(each.time_s for each in pair), flow, *pair))
                    break
    if not places:
        return ["no difference"]
    time_s, flow, in_ns2_, here_ = min(places, key=lambda each: each[0])
    lines = [f"at {time_s:.4f} s, flow {flow}: in ns-2 {in_ns2_}, here {here_}"]
    for name, events in (("ns-2", theirs), ("here", ours)):
        of_flow = [each for each in events if each.flow == flow]
        at = next((n for n, each in enumerate(of_flow) if each.time_s >= time_s - 1e-9), 0)
        shown = of_flow[max(0, at - context) : at + context]
        lines.append(
            f"{name}: "
            + " ".join(
                f"{each.time_s:.3f}{'+' if each.data else '-'}{each.segment}" for each in shown
            )
        )
    return lines


def main() -> None:
    """Print the first packets that differ in some cells."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("numbers", type=int, nargs="+", help="of cells")
    asked = parser.parse_args()
    for number in asked.numbers:
        of = cell(asked.kind, number)
        print(of, *first_difference(of), sep="\n")


if __name__ == "__main__":
    main()
