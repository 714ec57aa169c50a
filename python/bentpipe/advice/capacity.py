"""Remedies for capacity on demand: capacity that needs no request, and requests by volume."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bentpipe.advice.network import Network, one_path_each
from bentpipe.advice.remedy import Remedy

if TYPE_CHECKING:
    from bentpipe.prediction.paths import FlowPath


def capacity_remedies(network: Network) -> Iterator[Remedy]:
    """Yield constant and free capacity for acknowledgments, and volume-based and free for data.

    Only for directions that request capacity from the hub.
    """
    yield from _for_acknowledgments(network)
    yield from _for_data(network)


def _for_acknowledgments(network: Network) -> Iterator[Remedy]:
    for path in one_path_each(network.paths, lambda path: path.up_bottleneck.name):
        narrow = path.up_bottleneck
        access = network.settings_of(narrow).get("access")
        if access is None:
            continue
        key = f"{network.key_of(narrow)}.access"
        constant_bps = _acknowledgments_bps(network, path, access)
        if access["constant_bps"] is None and constant_bps >= 1000:
            rate = f"{constant_bps // 1000} kbit/s"
            yield Remedy(
                kind="capacity",
                family=f"constant, {narrow.name}",
                name=f"constant capacity of {rate} on {narrow.name}",
                why="acknowledgments need no capacity requests",
                settings=((key, _table(access, constant=f'"{rate}"')),),
            )
        if not access["free"]:
            yield _free(key, narrow.name, access)


def _for_data(network: Network) -> Iterator[Remedy]:
    for path in one_path_each(network.paths, lambda path: path.down_bottleneck.name):
        narrow = path.down_bottleneck
        access = network.settings_of(narrow).get("access")
        # Requests by volume are granted for everything that is queued.
        if access is None or access["volume_based"] or access["free"]:
            continue
        key = f"{network.key_of(narrow)}.access"
        yield Remedy(
            kind="capacity",
            family=f"volume, {narrow.name}",
            name=f"capacity by volume on {narrow.name}",
            why="everything that is queued is requested",
            settings=((key, _table(access, volume_based="true")),),
        )
        yield _free(key, narrow.name, access)


def _free(key: str, name: str, access: Mapping[str, Any]) -> Remedy:
    return Remedy(
        kind="capacity",
        family=f"free, {name}",
        name=f"free capacity on {name}",
        why="capacity without requests is used by terminals with queued packets",
        settings=((key, _table(access, free="true")),),
    )


def _acknowledgments_bps(network: Network, path: FlowPath, access: Mapping[str, Any]) -> int:
    """Return the rate of a full downlink's acknowledgments, at most a terminal's free share."""
    per_s = path.down_bottleneck.rate_bps / (8.0 * path.packet_bytes * path.segments_per_ack)
    wanted_bps = per_s * 8.0 * path.answer_bytes * path.up_bottleneck.redundancy
    promised, terminals = 0.0, 0
    for link in network.resolved["links"]:
        for way in ("forward", "return"):
            other = link[way] and link[way].get("access")
            if other and access["carrier"] is not None and other["carrier"] == access["carrier"]:
                promised += other["constant_bps"] or 0
                terminals += 1
    left_bps = (float(access["carrier_rate_bps"]) - promised) / max(terminals, 1)
    return math.floor(min(wanted_bps, left_bps))


def _table(access: Mapping[str, Any], **changed: str) -> str:
    """Return an access table with some of its keys changed, as TOML."""
    keys = {"kind": '"on-demand"'}
    if access["carrier"] is not None:
        keys["carrier"] = f'"{access["carrier"]}"'
    else:
        keys["frame"] = f'"{access["frame_s"] * 1e3:.10g} ms"'
        keys["processing"] = f'"{access["processing_s"] * 1e3:.10g} ms"'
    for key in ("constant", "rate_based"):
        if access[f"{key}_bps"] is not None:
            keys[key] = f'"{access[f"{key}_bps"]:.0f} bit/s"'
    keys["volume_based"] = str(access["volume_based"]).lower()
    keys["free"] = str(access["free"]).lower()
    for key in ("request_delay", "grant_delay"):
        keys[key] = f'"{access[f"{key}_s"] * 1e3:.10g} ms"'
    keys |= changed
    return f"{{ {', '.join(f'{key} = {value}' for key, value in keys.items())} }}"
