"""The fitted scenario as TOML, with a comment for each value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from bentpipe.fit.measurement import FORWARD, RETURN, Measurement

if TYPE_CHECKING:
    from bentpipe.fit.combination import Path
    from bentpipe.fit.estimate import Estimate

_LEAST_DURATION_S: Final = 10.0
_USUAL_DURATION_S: Final = 30.0
# A bandwidth-delay product is counted in packets of this size.
_PACKET_BITS: Final = 12000.0
_LEAST_QUEUE: Final = 100
# Columns of a line.
_WIDTH: Final = 100
# Names of congestion control that the simulator has, by those of Linux.
CONTROLS: Final = {
    "cubic": "cubic",
    "reno": "reno",
    "bbr": "bbr",
    "westwood": "westwood",
    "hybla": "hybla",
}


def format_estimate(each: Estimate, value: float | None = None) -> str:
    """Write a value of an estimate in its unit: "10 Mbit/s"; its own if none is given."""
    if isinstance(each.value, str):
        return each.value
    number = float(each.value) if value is None else value
    if each.unit == "bit/s":
        return _rate(number)
    if each.unit == "s":
        return f"{number * 1e3:.2f} ms" if number < 1 else f"{number:.4f} s"
    if each.unit == "1" and ".loss" in each.key:
        return f"{100 * number:.3g}%"
    if each.unit == "1":
        return f"{number:.2f}"
    if each.unit == "packets":
        return f"{number:.1f} packets"
    return f"{number:,.0f} {each.unit}".rstrip()


def format_interval(each: Estimate) -> str:
    """Write the confidence interval; a dash if there is none."""
    if each.low is None or each.high is None:
        return "–"
    return f"{format_estimate(each, each.low)} to {format_estimate(each, each.high)}"


def _rate(bits_per_second: float) -> str:
    """Write a rate with four digits."""
    for prefix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if bits_per_second >= scale:
            return f"{bits_per_second / scale:.4g} {prefix}bit/s"
    return f"{bits_per_second:.4g} bit/s"


def scenario_text(path: Path, measurements: Sequence[Measurement], *, name: str) -> str:
    """Return the scenario file."""
    lines = [
        (
            f"# Fitted to measurements by `bentpipe fit` ({len(measurements)} "
            f"file{'s' if len(measurements) > 1 else ''}). Intervals are 95% confidence intervals."
        ),
        "# The server is the far end; forward is from the server to the client.",
    ]
    for each in measurements:
        lines += _comment(f"{_plain(each.name)}: {each.kind}, {each.summary}.")
    duration = path.transfer.duration_s if path.transfer is not None else _USUAL_DURATION_S
    duration = max(_LEAST_DURATION_S, float(math.ceil(duration)))
    lines += ["", f'name = "{name}"', f'duration = "{duration:.0f} s"', "seed = 1"]
    ip = path.estimates.get("host.ip")
    if ip is not None and ip.value == "v6":
        lines.append('ip = "v6"')
    lines += [*_hosts(path), *_link(path), *_flows(path)]
    lines += ["", "# Not determined by the measurements:"]
    for lack in path.undetermined:
        lines += _comment(f"{lack.key}: {lack.reason}. Assumed: {lack.assumed}.")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Return text of a file name without characters that a comment cannot hold."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def _comment(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(
        text, _WIDTH - 2, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False
    )


def _stated(path: Path, key: str) -> list[str]:
    """Return the comment about an estimate."""
    each = path.estimates[key]
    interval = "" if each.low is None else f" ({format_interval(each)})"
    return _comment(f"{format_estimate(each)}{interval}, {_plain(each.source)}: {each.method}.")


def _sender(path: Path) -> str:
    is_upload = path.transfer is not None and path.transfer.direction == RETURN
    return "client" if is_upload else "server"


def _hosts(path: Path) -> Iterator[str]:
    sender = _sender(path)
    for host in ("server", "client"):
        yield ""
        yield f"[hosts.{host}.tcp]"
        for key, name in (
            ("timestamps", "timestamps"),
            ("sack", "sack"),
            ("window_scaling", "window_scaling"),
        ):
            each = path.estimates.get(f"host.{key}")
            if each is not None and each.value == "off":
                yield from _stated(path, f"host.{key}")
                yield f"{name} = false"
        mss = path.estimates.get("host.mss")
        if mss is not None and 64 <= float(mss.value) <= 65000:
            yield from _stated(path, "host.mss")
            yield f'mss = "{float(mss.value):.0f} B"'
        yield from _sender_keys(path) if host == sender else _receiver_keys(path)


def _sender_keys(path: Path) -> Iterator[str]:
    first = path.estimates.get("host.initial_window")
    if first is not None:
        yield from _stated(path, "host.initial_window")
        yield f'initial_window = "{float(first.value):.0f} segments"'
    control = path.estimates.get("host.congestion_control")
    if control is not None:
        yield from _stated(path, "host.congestion_control")
        known = CONTROLS.get(str(control.value))
        if known is not None:
            yield f'congestion_control = "{known}"'
        else:
            yield "# The simulator has no such congestion control: its default is used."


def _receiver_keys(path: Path) -> Iterator[str]:
    buffer = path.estimates.get("receiver.receive_buffer")
    if buffer is not None and float(buffer.value) <= _most_buffer(path):
        yield from _stated(path, "receiver.receive_buffer")
        yield f'receive_buffer = "{float(buffer.value):.0f} B"'
    every = path.estimates.get("receiver.ack_every")
    if every is not None and 2 <= float(every.value) <= 1000:
        yield from _stated(path, "receiver.ack_every")
        yield f"ack_every = {float(every.value):.0f}"


def _most_buffer(path: Path) -> float:
    scaling = path.estimates.get("host.window_scaling")
    return 65535.0 if scaling is not None and scaling.value == "off" else 1073725440.0


def _link(path: Path) -> Iterator[str]:
    yield ""
    yield "[links.path]"
    yield 'between = ["server", "client"]'
    for way in (FORWARD, RETURN):
        yield ""
        yield f"[links.path.{way}]"
        if f"{way}.rate" in path.estimates:
            yield from _stated(path, f"{way}.rate")
        else:
            yield "# Assumed: see below."
        yield f'rate = "{_exact_rate(path.rate_bps[way])}"'
        key = f"{way}.delay" if f"{way}.delay" in path.estimates else "round_trip.delay"
        if key == "round_trip.delay" and way == RETURN:
            yield "# The other half of the round trip."
        elif key in path.estimates:
            if key == "round_trip.delay":
                yield "# Half of the round trip:"
            yield from _stated(path, key)
        yield f'delay = "{path.delay_s[way] * 1e3:.3f} ms"'
        yield from _queue(path, way)
        yield from _errors(path, way)
        acks = path.estimates.get(f"{way}.acks")
        if acks is not None:
            yield from _stated(path, f"{way}.acks")
            yield f'acks = {{ kind = "{acks.value}" }}'


def _exact_rate(bits_per_second: float) -> str:
    return f"{max(1.0, float(f'{bits_per_second:.5g}')):.0f} bit/s"


def _queue(path: Path, way: str) -> Iterator[str]:
    key = f"{way}.queue"
    if key in path.estimates:
        yield from _stated(path, key)
        packets = max(1, round(float(path.estimates[key].value)))
        yield f'queue = {{ kind = "drop-tail", limit = "{packets} packets" }}'
        return
    bound = path.estimates.get(f"{key}.least")
    whole = path.rate_bps[way] * sum(path.delay_s.values()) / _PACKET_BITS
    if bound is not None and float(bound.value) > max(whole, _LEAST_QUEUE):
        yield from _stated(path, f"{key}.least")
        yield f'queue = {{ kind = "drop-tail", limit = "{math.ceil(float(bound.value))} packets" }}'


def _errors(path: Path, way: str) -> Iterator[str]:
    loss = path.estimates.get(f"{way}.loss")
    if loss is None:
        return
    yield from _stated(path, f"{way}.loss")
    rate = float(f"{float(loss.value):.4g}")
    if not 0 < rate < 1:
        return
    burst = path.estimates.get(f"{way}.loss.burst")
    if burst is not None:
        yield from _stated(path, f"{way}.loss.burst")
        mean = max(float(burst.value), 1.0001 * rate / (1 - rate))
        yield f"errors = {{ packet_loss_rate = {rate!r}, mean_burst_packets = {mean:.4g} }}"
    else:
        yield f"errors = {{ packet_loss_rate = {rate!r} }}"


def _flows(path: Path) -> Iterator[str]:
    is_upload = _sender(path) == "client"
    name = "upload" if is_upload else "download"
    yield ""
    yield f"[flows.{name}]"
    yield 'from = "client"'
    yield 'to = "server"'
    count = path.transfer.connections if path.transfer is not None else 1
    if 1 < count <= 1000:
        yield f"count = {count}"
    yield f'app = {{ kind = "bulk", direction = "{name}" }}'
