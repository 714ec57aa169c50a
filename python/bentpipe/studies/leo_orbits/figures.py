"""Tables of the study: latitudes, cities, window rules, offices, and a ship's day."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from bentpipe.studies.columns import add, empty
from bentpipe.studies.leo_orbits.cells import (
    ADDRESSES,
    CITIES,
    LATITUDES,
    LONDON,
    LOSSES,
    PAIRS,
    RULES,
    SATELLITES,
    SHELLS,
    SPLITTING,
    address,
    latitude,
    ship,
    to_city,
)
from bentpipe.studies.leo_orbits.evidence import great_circle_m
from bentpipe.studies.study import Table

if TYPE_CHECKING:
    from bentpipe.studies.leo_orbits.evidence import Evidence

# Hours of the ship's day in a row of its table.
_HOURS = 3


def figures(evidence: Evidence) -> list[Table]:
    """Return the tables of the study."""
    return [
        _latitudes(evidence),
        _cities(evidence),
        _rules(evidence),
        _offices(evidence),
        _ship(evidence),
        _measured(evidence),
        _addresses(evidence),
    ]


def _latitudes(evidence: Evidence) -> Table:
    columns = empty(
        "latitude, deg",
        "satellites in sight",
        "in sight, of the time",
        "least round trip, ms",
        "greatest, ms",
        "handovers",
        "download, Mbit/s",
        "call, MOS",
    )
    for degrees in LATITUDES:
        cell = latitude(degrees)
        orbit = evidence.orbit(cell)
        path = orbit.path("satellite")
        site = next(each for each in orbit.summary["sites"] if each["site"] == "office")
        result = evidence.result(cell)
        calls = result.flow("call").extra["calls"]
        add(
            columns,
            degrees,
            site["in_sight"]["mean"],
            site["covered"],
            2e3 * path["delay_s"]["min"],
            2e3 * path["delay_s"]["max"],
            path["handovers"],
            result.flow("download").goodput_bps / 1e6,
            median(end["mos"] for call in calls for end in (call["there"], call["back"])),
        )
    return Table(
        id="1",
        title="A download and a call at three latitudes, over Starlink's first shell",
        caption="Ten minutes. The round trip is that of the satellite link, with 5 ms in each "
        "direction in addition to propagation.",
        columns=columns,
    )


def _cities(evidence: Evidence) -> Table:
    columns = empty(
        "altitude",
        "from London to",
        "great circle, km",
        "round trip, median, ms",
        "satellites",
        "handovers",
        "over glass",
    )
    for shell in SHELLS:
        for city in CITIES:
            path = evidence.orbit(to_city(city, shell=shell)).path("space")
            add(
                columns,
                shell,
                city.name,
                great_circle_m(LONDON, city) / 1e3,
                2e3 * path["delay_s"]["median"],
                path["satellites"]["median"],
                path["handovers"],
                evidence.space_over_fibre(city, shell),
            )
    return Table(
        id="2",
        title="Links between satellites beside fibre",
        caption="Over glass: the delay relative to light in glass along the great circle, which "
        "no cable reaches.",
        columns=columns,
    )


def _rules(evidence: Evidence) -> Table:
    columns = empty("window rule", "random losses", "median, Mbit/s", "least", "most")
    for name in RULES:
        for loss in LOSSES:
            goodputs = [each / 1e6 for each in evidence.goodput_bps(name, loss)]
            add(columns, name, f"{loss:.0%}", median(goodputs), min(goodputs), max(goodputs))
    return Table(
        id="3",
        title="Window rules over handovers: a download of 30 s",
        caption="150 Mbit/s at 50 degrees north, with an outage of 50 ms at each handover; "
        "goodput by seed.",
        columns=columns,
    )


def _offices(evidence: Evidence) -> Table:
    columns = empty(
        "satellites", "gateways", "page, median, s", "least of the seeds", "most of the seeds"
    )
    for name in SATELLITES:
        for gateways in PAIRS:
            times_s = [each / 1e3 for each in evidence.page_ms(name, gateways)]
            add(columns, name, gateways, median(times_s), min(times_s), max(times_s))
    return Table(
        id="4",
        title="Pages of an office: OneWeb beside a geostationary satellite",
        caption="Ten users behind 50/10 Mbit/s; the median page of all users. Gateways at both "
        "ends of the satellite link route, split connections, or multiplex them over two.",
        columns=columns,
    )


def _measured(evidence: Evidence) -> Table:
    columns = empty("window rule", "gateway", "median, Mbit/s", "least", "most")
    for name in RULES:
        for gateway in SPLITTING if name == "cubic" else ("router",):
            goodputs = [each / 1e6 for each in evidence.measured_bps(name, gateway)]
            add(columns, name, gateway, median(goodputs), min(goodputs), max(goodputs))
    return Table(
        id="6",
        title="Window rules over measured slots, and a gateway for CUBIC",
        caption="As table 3, with jitter, spikes and losses as measured in Australia in place of "
        "outages. A splitting gateway is at the point of presence.",
        columns=columns,
    )


def _addresses(evidence: Evidence) -> Table:
    columns = empty("address", "download, MB", "call, MOS")
    for kept in ADDRESSES:
        result = evidence.result(address(kept))
        calls = result.flow("call").extra["calls"]
        add(
            columns,
            kept,
            result.flow("download").bytes_delivered / 1e6,
            median(end["mos"] for call in calls for end in (call["there"], call["back"])),
        )
    return Table(
        id="7",
        title="A terminal between two gateways: its address is kept, or changes with the gateway",
        caption="Four minutes over Starlink's first shell.",
        columns=columns,
    )


def _ship(evidence: Evidence) -> Table:
    columns = empty("hours", "served", "round trip, median, ms", "km to the gateway")
    table = evidence.orbit(ship()).tables["paths"]
    outages = evidence.orbit(ship()).tables["outages"]
    gaps = np.array([kind == "gap" for kind in outages["kind"]], dtype=bool)
    begins, lasts = outages["at_s"][gaps], outages["lasts_s"][gaps]
    for hour in range(0, 24, _HOURS):
        start, end = hour * 3600.0, (hour + _HOURS) * 3600.0
        lost = np.clip(np.minimum(begins + lasts, end) - np.maximum(begins, start), 0.0, None)
        inside = (table["at_s"] >= start) & (table["at_s"] < end)
        served = bool(inside.any())
        add(
            columns,
            f"{hour} to {hour + _HOURS}",
            1.0 - float(lost.sum()) / (end - start),
            2e3 * float(np.median(table["delay_s"][inside])) if served else None,
            float(np.median(table["surface_m"][inside])) / 1e3 if served else None,
        )
    return Table(
        id="5",
        title="A ship's day in the middle of the Atlantic, over bent pipes",
        caption="Gateways in Ireland and Newfoundland. No value: no satellite sees both the ship "
        "and a gateway.",
        columns=columns,
    )
