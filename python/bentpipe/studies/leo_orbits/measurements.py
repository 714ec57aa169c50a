"""Measurements of the claims: one function for each claim, named by its id."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Final

from bentpipe.studies.judging import ratio
from bentpipe.studies.leo_orbits.cells import (
    CITIES,
    FILED,
    HANDLEY,
    LATITUDES,
    LONDON,
    LOSSES,
    City,
    address,
    latitude,
    office,
    ship,
)
from bentpipe.studies.leo_orbits.evidence import Evidence, great_circle_m
from bentpipe.studies.study import Measurement

Measure = Callable[[Evidence], Measurement]

# Delays on the ground and of processing in download.toml, which are no propagation.
_EXTRA_S: Final = 5e-3
# Distances for which the sources state one order or the other.
_FAR_M: Final = 3.3e6
_NEAR_M: Final = 2.7e6
_NEARER_M: Final = 2.0e6


def measure(evidence: Evidence) -> dict[str, Measurement]:
    """Measure every claim."""
    return {name: measured(evidence) for name, measured in _MEASURES.items()}


def _bent_pipe_delay(evidence: Evidence) -> Measurement:
    delays_ms = []
    for degrees in LATITUDES:
        delay = evidence.orbit(latitude(degrees)).path("satellite")["delay_s"]
        delays_ms += [1e3 * (delay[key] - _EXTRA_S) for key in ("min", "max")]
    return Measurement(
        measured=f"{min(delays_ms):.2f} to {max(delays_ms):.2f} ms",
        values={"delay_ms": delays_ms},
    )


def _over_fibre(is_meant: Callable[[float], bool], shell: str) -> Measure:
    def measured(evidence: Evidence) -> Measurement:
        cities = [city for city in CITIES if is_meant(great_circle_m(LONDON, city))]
        ratios = [evidence.space_over_fibre(city, shell) for city in cities]
        return Measurement(measured=_listed(cities, ratios), values={"space_over_fibre": ratios})

    return measured


def _listed(cities: list[City], ratios: list[float]) -> str:
    return ", ".join(
        f"{city.name} ({great_circle_m(LONDON, city) / 1e3:,.0f} km): {each:.2f}"
        for city, each in zip(cities, ratios, strict=True)
    )


def in_sight(evidence: Evidence, degrees: int) -> float:
    """Return the satellites in sight at a latitude, of OneWeb, on average."""
    cell = office("oneweb", 1)
    settings = (*cell.settings, ("sites.office.latitude", f"{degrees} deg"))
    settings = (*settings, ("sites.gateway.latitude", f"{degrees} deg"))
    found = evidence.orbit(type(cell)(file=cell.file, settings=settings)).summary["sites"]
    return float(next(site for site in found if site["site"] == "office")["in_sight"]["mean"])


def _oneweb_polar(evidence: Evidence) -> Measurement:
    here, there = in_sight(evidence, 60), in_sight(evidence, 0)
    return Measurement(
        measured=f"{here:.1f} satellites in sight at 60 degrees, {there:.1f} at the equator",
        values={"at_60_over_equator": [ratio(here, there)]},
    )


def _bbr_over_cubic(losses: tuple[float, ...]) -> Measure:
    def measured(evidence: Evidence) -> Measurement:
        parts, ratios = [], []
        for loss in losses:
            bbr, cubic = (median(evidence.goodput_bps(name, loss)) for name in ("bbr", "cubic"))
            ratios.append(ratio(bbr, cubic))
            parts.append(f"{loss:.0%} lost: {bbr / 1e6:.0f} and {cubic / 1e6:.0f} Mbit/s")
        return Measurement(measured="; ".join(parts), values={"bbr_over_cubic": ratios})

    return measured


def _over_cubic(evidence: Evidence) -> Measurement:
    cubic = median(evidence.measured_bps("cubic"))
    rates = {name: median(evidence.measured_bps(name)) for name in ("bbr", "bbr3")}
    listed = ", ".join(f"{name} {rate / 1e6:.0f}" for name, rate in rates.items())
    return Measurement(
        measured=f"{listed}, cubic {cubic / 1e6:.1f} Mbit/s",
        values={"over_cubic": [ratio(rate, cubic) for rate in rates.values()]},
    )


def _address(evidence: Evidence) -> Measurement:
    changed, kept = (
        float(evidence.result(address(name)).flow("download").bytes_delivered)
        for name in ("changed", "kept")
    )
    moses = [
        end["mos"]
        for call in evidence.result(address("changed")).flow("call").extra["calls"]
        for end in (call["there"], call["back"])
    ]
    return Measurement(
        measured=(
            f"{changed / 1e6:,.0f} of {kept / 1e6:,.0f} MB; the call's MOS {min(moses):.1f} or more"
        ),
        values={"delivered_over_kept": [ratio(changed, kept)], "call_mos": [min(moses)]},
    )


def _split_with_bbr(evidence: Evidence) -> Measurement:
    split, bbr = (
        median(evidence.measured_bps(*each)) for each in (("cubic", "split with BBR"), ("bbr",))
    )
    return Measurement(
        measured=f"{split / 1e6:.0f} Mbit/s, {bbr / 1e6:.0f} with BBR at the sender",
        values={"split_over_bbr": [ratio(split, bbr)]},
    )


def _pair_on_leo(evidence: Evidence) -> Measurement:
    gains = {}
    for satellites in ("geo", "oneweb"):
        plain, paired = (
            median(evidence.page_ms(satellites, each)) for each in ("router", "multiplexed")
        )
        gains[satellites] = ratio(plain, paired)
    return Measurement(
        measured=f"{gains['geo']:.2f} times faster by GEO, {gains['oneweb']:.2f} by OneWeb",
        values={"geo_gain": [gains["geo"]], "gain_over_leo": [gains["geo"] / gains["oneweb"]]},
    )


def _pages(evidence: Evidence) -> Measurement:
    geo, leo = (median(evidence.page_ms(name)) for name in ("geo", "oneweb"))
    return Measurement(
        measured=f"{geo / 1e3:.2f} s by GEO, {leo / 1e3:.2f} s by OneWeb: {geo / leo:.1f}",
        values={"geo_over_leo": [ratio(geo, leo)]},
    )


def _edge(evidence: Evidence) -> Measurement:
    sites = evidence.orbit(latitude(60)).summary["sites"]
    covered = next(site for site in sites if site["site"] == "office")["covered"]
    return Measurement(measured=f"{covered:.1%} of the time", values={"covered": [covered]})


def _ship(evidence: Evidence) -> Measurement:
    surface_m = evidence.orbit(ship()).tables["paths"]["surface_m"]
    last_km = float(surface_m.max()) / 1e3
    return Measurement(
        measured=f"served up to {last_km:,.0f} km from a gateway",
        values={"last_served_km": [last_km]},
    )


_MEASURES: Final[dict[str, Measure]] = {
    "bent-pipe-delay": _bent_pipe_delay,
    "faster-than-fibre": _over_fibre(lambda metres: metres > _FAR_M, HANDLEY),
    "fibre-for-the-near": _over_fibre(lambda metres: metres < _NEAR_M, HANDLEY),
    "lower-shell": _over_fibre(lambda metres: metres > _NEARER_M, FILED),
    "oneweb-polar": _oneweb_polar,
    "bbr-above-cubic": _bbr_over_cubic(LOSSES),
    "bbr-six-times": _bbr_over_cubic(LOSSES[:1]),
    "both-bbr-above-cubic": _over_cubic,
    "address-breaks-downloads": _address,
    "gateway-with-bbr": _split_with_bbr,
    "pages-eight-times": _pages,
    "gateways-less-on-leo": _pair_on_leo,
    "edge-of-the-shell": _edge,
    "ship-between": _ship,
}
