"""`bentpipe-gateway`: a gateway of a scenario on a real Linux machine."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from bentpipe import signals
from bentpipe.cli.output import captures, print_json
from bentpipe.cli.run_tables import packets
from bentpipe.cli.source import find_scenario, told_apart
from bentpipe.cli.tables import Table
from bentpipe.errors import RequestError, WorkError
from bentpipe.units import format_bytes, format_seconds


def gateway(
    *,
    file: str | None,
    gateway: str | None,
    link: str | None,
    interfaces: Sequence[str],
    shape: Sequence[str],
    address: str | None,
    peer_address: str | None,
    duration: str | None,
    check: bool,
    clean: bool,
    seed: int | None,
    settings: Sequence[str],
    pcap: Sequence[str],
    snap: int | None,
    as_json: bool,
) -> int:
    """Forward until a signal comes, and print what was counted; return the exit status."""
    from bentpipe import _native

    if clean:
        return _clean(as_json=as_json)
    if file is None:
        raise RequestError("which scenario? bentpipe-gateway FILE --gateway NAME; see --help")
    if (gateway is None) == (link is None):
        raise RequestError(
            "expected --gateway NAME, or --link NAME: what of the file this machine is"
        )
    if link is not None and shape:
        raise RequestError("--shape is for a gateway; a --link is as the file has it anyway")
    if link is not None and (address or peer_address):
        raise RequestError("--address is for a gateway; a link has no persistent connections")
    scenario = find_scenario(file, settings)
    with told_apart(scenario, command="gateway"):
        scenario.resolved()
    with captures([] if check else pcap) as captured, _until_a_signal() as stopped:

        def tell(lines: list[str]) -> bool:
            for line in lines:
                _say(line)
            return stopped.is_set()

        text = _native.gateway(
            scenario.path,
            text=scenario.text,
            seed=seed,
            overrides=list(scenario.settings),
            pcap=[(each, str(path)) for each, path in captured],
            snap_length=snap,
            name=gateway,
            link=link,
            shaped=list(shape),
            address=address,
            peer_address=peer_address,
            interfaces=[_interface(each) for each in interfaces],
            duration=duration,
            check=check,
            tell=tell,
        )
    result = json.loads(text)
    if check:
        return _tell_plan(result, _native.gateway_obstacle(), as_json=as_json)
    if as_json:
        print_json(text)
    else:
        _print_result(result)
        for _, path in captured:
            print(f"wrote {path}")
    return 0


def _interface(text: str) -> tuple[str, str]:
    name, equals, interface = text.partition("=")
    if not equals or not name or not interface:
        raise RequestError(f"--interface {text}: expected LINK=INTERFACE, such as satellite=eth1")
    return name, interface


def _clean(*, as_json: bool) -> int:
    from bentpipe import _native

    if (obstacle := _native.gateway_obstacle()) is not None:
        raise WorkError(f"nothing can be removed: {obstacle}")
    rules, groups = _native.gateway_leftovers()
    if as_json:
        print_json({"rules": rules, "groups": groups})
    else:
        print(f"removed {rules} rules, and took {groups} interfaces out of groups")
    return 0


def _tell_plan(plan: Mapping[str, Any], obstacle: str | None, *, as_json: bool) -> int:
    """Say what would be done; the status is 1 where nothing can be."""
    if as_json:
        print_json({**plan, "obstacle": obstacle})
    else:
        for line in plan["would"]:
            print(line)
        for note in plan["notes"]:
            print(f"note: {note}")
        if obstacle is not None:
            print(f"in the way: {obstacle}")
    return 0 if obstacle is None else 1


def _print_result(result: Mapping[str, Any]) -> None:
    ran, entered = format_seconds(result["ended_s"]), result["packets_in"]
    print(f"{result['scenario']}: {ran}, {entered:,} packets came in")
    table = Table(
        headings=("gateway", "kind", "connections", "bytes held at most"), left=frozenset({1})
    )
    for each in result["gateways"]:
        connections = each.get("connections", {})
        shown = ", ".join(
            f"{connections[name]:,} {name}" for name in _COUNTED if name in connections
        )
        held = each.get("bytes_held")
        most = format_bytes(held["max"]) if held is not None else "–"
        table.add(each["name"], each["kind"], shown or "–", most)
    links = Table(headings=("link", "packets", "bytes", "lost", "dropped", "longest queue"))
    for each in result["links"]:
        counted = (each.get(f"packets_{what}") for what in ("lost", "dropped"))
        links.add(
            each["name"],
            f"{each['packets_delivered']:,}",
            format_bytes(each["bytes_delivered"]),
            *("–" if count is None else f"{count:,}" for count in counted),
            packets(each.get("queue_max_packets")),
        )
    for each in (table, links):
        if each.rows:
            print()
            each.print()
    late = result["late_ms"]
    mean, p99, most = (format_seconds(late[name] / 1e3) for name in ("mean", "p99", "max"))
    print(f"\npackets left late by {mean} in the mean, {p99} (99%), {most} at most")
    for reason, count in result["refused"].items():
        print(f"refused, {reason}: {count:,}")


_COUNTED = ("split", "tracked", "passed", "refused")


@contextlib.contextmanager
def _until_a_signal() -> Iterator[threading.Event]:
    """Have SIGINT, SIGTERM and SIGHUP end it in order, with what was counted.

    Under nohup, where SIGHUP is ignored, it stays so.
    """
    stopped = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        stopped.set()

    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    with signals.handling(numbers, end):
        yield stopped


def _say(line: str) -> None:
    # A reader that is gone, or a full disk, must not end the gateway.
    with contextlib.suppress(OSError):
        print(f"bentpipe-gateway: {line}", file=sys.stderr, flush=True)
