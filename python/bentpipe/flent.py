"""Results as flent's data files (.flent.gz), and RRUL, flent's best-known test.

The format is flent's version 4: gzipped JSON with these keys.

`version`     4.
`x_values`    Sample times, in seconds.
`results`     Series by name: a value, or null, for each sample time.
`raw_values`  Series by name: samples with seconds since the epoch.
`metadata`    Description of the test.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bentpipe.errors import RequestError
from bentpipe.files import atomic_write
from bentpipe.scenario import Scenario

if TYPE_CHECKING:
    from bentpipe.results import RunResult

FORMAT: Final = 4
# flent's sampling interval.
STEP_S: Final = 0.2
# A data file has a date, and a run has none. A fixed date gives the same file for the same run.
_FIXED_DATE: Final = datetime(2000, 1, 1, tzinfo=UTC)
_TIMES: Final = "%Y-%m-%dT%H:%M:%S.%fZ"

# flent's DSCP marks of its four TCPs and three UDPs. Here they are only names.
_TCP_MARKS: Final = ("BE", "BK", "CS5", "EF")
_UDP_MARKS: Final = ("BE", "BK", "EF")
_DURATION_S: Final = 65.0
_TCP_STARTS_S: Final = 5.0


def rrul(scenario: Scenario) -> Scenario:
    """Return the scenario with RRUL's flows instead of its own, between the ends of its first flow.

    Four TCP flows in each direction, from 5 s until the end at 65 s. Three UDP echoes and one ICMP
    echo, every 200 ms from the beginning. The client is the host that receives the first flow's
    data.

    Raises
    ------
    ScenarioError
        The scenario is wrong.
    RequestError
        The file is not TOML.
    """
    import tomllib

    from bentpipe import toml

    resolved = scenario.resolved()
    first = resolved["flows"][0]
    app = first["app"]
    uploads = app["kind"] == "bulk" and app.get("direction", "upload") == "upload"
    client, server = (first["to"], first["from"]) if uploads else (first["from"], first["to"])
    try:
        data = toml.read(scenario.content())
    except tomllib.TOMLDecodeError as error:
        raise RequestError(f"{scenario.path}: {error}") from error
    ends = {"from": client, "to": server}
    starts = f"{_TCP_STARTS_S:g} s"
    every = f"{STEP_S * 1e3:g} ms"
    flows: dict[str, Any] = {}
    for mark in _TCP_MARKS:
        for way in ("upload", "download"):
            transfer = {"kind": "bulk", "direction": way}
            flows[f"{way}-{mark}"] = {**ends, "start": starts, "app": transfer}
    for mark in _UDP_MARKS:
        echo = {"kind": "ping", "protocol": "udp", "size": "32 B", "interval": every}
        flows[f"udp-{mark}"] = {**ends, "app": echo}
    flows["icmp"] = {**ends, "app": {"kind": "ping", "interval": every}}
    data.pop("mixes", None)
    data["flows"] = flows
    data["duration"] = f"{_DURATION_S:g} s"
    tcps = [name for name in flows if name.startswith(("upload", "download"))]
    echoes = [name for name in flows if name not in tcps]
    series = [f"{name}.goodput" for name in tcps] + [f"{name}.response_time" for name in echoes]
    queues = [
        f"{link['name']}.{way}.queue" for link in resolved["links"] for way in ("forward", "return")
    ]
    data["probes"] = {"series": series + queues[:16], "interval": every}
    made = Scenario.from_data(data)
    kept = [(key, value) for key, value in scenario.settings if not _is_replaced(key)]
    return Scenario(path=scenario.path, text=made.text, settings=tuple(kept))


def _is_replaced(key: str) -> bool:
    return key.split(".")[0] in {"flows", "mixes", "probes", "duration"}


def write_flent(result: RunResult, scenario: Scenario, path: Path) -> None:
    """Write a run as flent's data file: goodput and response times of its flows.

    RRUL's flows get flent's names for them, so that flent's plots of RRUL apply. Other flows are
    "TCP upload::NAME", "TCP download::NAME" and "Ping (ms)::NAME", as in flent's tests of any
    number of flows.

    Raises
    ------
    RequestError
        The run recorded neither goodput nor response times.
    """
    document = flent_document(result, scenario)
    text = json.dumps(document, indent=2, sort_keys=True).encode()
    if path.suffix == ".gz":
        # The gzip header has no file name and no time, so that equal runs give equal bytes.
        packed = io.BytesIO()
        with gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as file:
            file.write(text)
        text = packed.getvalue()
    # flent decides by the file's name whether to decompress it.
    with atomic_write(path) as part:
        part.write_bytes(text)


def flent_document(result: RunResult, scenario: Scenario) -> dict[str, Any]:
    """Return what the data file holds."""
    summary = result.summary
    resolved = scenario.resolved()
    flows = {flow["name"]: flow for flow in resolved["flows"]}
    is_rrul = {f"download-{mark}" for mark in _TCP_MARKS} | {"icmp"} <= flows.keys()
    end_s = float(summary.extra.get("ended_s", summary.duration_s))
    x_values = [round(STEP_S * step, 6) for step in range(1, int(end_s / STEP_S) + 1)]
    results: dict[str, list[float | None]] = {}
    raw: dict[str, list[dict[str, float]]] = {}
    meta: dict[str, Any] = {}
    for name, series in result.series.items():
        flow, _, quantity = name.rpartition(".")
        if flow not in flows or quantity not in {"goodput", "response_time"}:
            continue
        rate = quantity == "goodput"
        label = _label(flow, flows[flow]["app"], rate=rate, rrul=is_rrul)
        if label is None or label in results:
            continue
        values = np.asarray(series.values) * (1e-6 if rate else 1e3)
        times = np.asarray(series.times_s)
        results[label] = _sampled(times, values, x_values)
        raw[label] = [
            {"t": _FIXED_DATE.timestamp() + float(at), "val": float(value)}
            for at, value in zip(times, values, strict=True)
        ]
        meta[label] = {"UNITS": "Mbits/s" if rate else "ms"}
    if not results:
        raise RequestError(
            "--flent: nothing was recorded that flent plots; name flows' goodput or response_time "
            "in probes.series, or leave them all out"
        )
    _add_sums(results, len(x_values))
    first = resolved["flows"][0]
    name = "rrul" if is_rrul else "rrul_be_nflows"
    metadata = {
        "NAME": name,
        "TITLE": f"bentpipe {summary.scenario}, seed {summary.seed}",
        "TIME": _FIXED_DATE.strftime(_TIMES),
        "T0": _FIXED_DATE.strftime(_TIMES),
        "LENGTH": round(end_s),
        "TOTAL_LENGTH": round(end_s),
        "STEP_SIZE": STEP_S,
        "HOST": first["to"],
        "HOSTS": [first["to"]],
        "LOCAL_HOST": first["from"],
        "DATA_FILENAME": f"{name}-{summary.scenario}.flent.gz",
        "TEST_PARAMETERS": {},
        "IP_VERSION": {"v4": 4, "v6": 6}[resolved["ip"]],
        "NOTE": None,
        "SERIES_META": meta,
        "BENTPIPE_SCENARIO": summary.scenario,
        "BENTPIPE_SEED": summary.seed,
    }
    return {
        "version": FORMAT,
        "x_values": x_values,
        "results": results,
        "raw_values": raw,
        "metadata": metadata,
    }


def _label(flow: str, app: Mapping[str, Any], *, rate: bool, rrul: bool) -> str | None:
    """Return flent's name of a flow's series; None where flent has none."""
    is_echo = app["kind"] == "ping"
    # An echo has a response time only, a bulk transfer a rate only, other applications both.
    if (is_echo and rate) or (app["kind"] == "bulk" and not rate):
        return None
    if rrul:
        kind, _, mark = flow.partition("-")
        names = {"upload": "TCP upload", "download": "TCP download", "udp": "Ping (ms) UDP"}
        return "Ping (ms) ICMP" if kind == "icmp" else f"{names[kind]} {mark}"
    if not rate:
        return f"Ping (ms)::{flow}"
    up = app["kind"] in {"mail", "packets"} or (
        app["kind"] in {"bulk", "ftp"} and app.get("direction", "upload") == "upload"
    )
    return f"TCP {'upload' if up else 'download'}::{flow}"


def _sampled(
    times: np.ndarray[Any, Any], values: np.ndarray[Any, Any], x_values: Sequence[float]
) -> list[float | None]:
    """Return the mean of the samples in each step; an empty step repeats the previous value."""
    edges = np.concatenate([[0.0], np.asarray(x_values)]) + 1e-9
    places = np.searchsorted(times, edges, side="right")
    found: list[float | None] = []
    for first, last in pairwise(places):
        if last > first:
            found.append(float(np.mean(values[first:last])))
        else:
            found.append(found[-1] if found else None)
    return found


def _add_sums(results: dict[str, list[float | None]], length: int) -> None:
    """Add the averages and sums that flent's tests compute."""
    groups = {
        kind: [values for name, values in results.items() if name.startswith(kind)]
        for kind in ("TCP upload", "TCP download", "Ping (ms)")
    }
    tcp = groups["TCP upload"] + groups["TCP download"]
    for kind, members in groups.items():
        if members:
            results[f"{kind} avg"] = [_mean(members, at) for at in range(length)]
            if kind != "Ping (ms)":
                results[f"{kind} sum"] = [_sum(members, at) for at in range(length)]
    if tcp:
        results["TCP totals"] = [_sum(tcp, at) for at in range(length)]


def _known(members: Sequence[Sequence[float | None]], at: int) -> list[float]:
    return [value for member in members if (value := member[at]) is not None]


def _mean(members: Sequence[Sequence[float | None]], at: int) -> float | None:
    known = _known(members, at)
    return sum(known) / len(known) if known else None


def _sum(members: Sequence[Sequence[float | None]], at: int) -> float | None:
    known = _known(members, at)
    return sum(known) if known else None
