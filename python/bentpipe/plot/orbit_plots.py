"""Pictures of orbits: the sky over a site, the delay of a path, and a map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from bentpipe.plot.coastline import land
from bentpipe.plot.style import COLOURS, legend_below, new_axes, write_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bentpipe.orbits import Orbit

Floats = NDArray[np.float64]
Table = Mapping[str, Any]

_LAND: Final = "#E8E4DA"
_COAST: Final = "#A8A294"
_OTHER: Final = "#9AA5B1"
# Paths of which pictures are made.
_MOST_PATHS: Final = 12
# Tracks in a picture of the sky; beyond that many changes, a delay is drawn as a range.
_MOST_TRACKS: Final = 60
_MOST_RUNS: Final = 150
# Intervals of such a range.
_INTERVALS: Final = 240
# Characters of a title's line.
_TITLE_COLUMNS: Final = 88
# Least degrees of longitude around the sites and satellites of paths, and the map's ratio.
_AROUND: Final = 18.0
_RATIO: Final = 1.8
# A longer step of longitude is one across the date line.
_ACROSS: Final = 180.0


def write_orbit_plots(orbit: Orbit, folder: Path) -> list[Path]:
    """Write the sky and the delay of each path, and a map, as SVG; return the files."""
    files = []
    for path in orbit.summary["paths"][:_MOST_PATHS]:
        link = path["link"]
        sky, delay = folder / f"{link}.sky.svg", folder / f"{link}.delay.svg"
        write_svg(partial(draw_sky, orbit=orbit, link=link), sky, width=5.2, height=5.4)
        write_svg(partial(draw_delay, orbit=orbit, link=link), delay)
        files += [sky, delay]
    everywhere = folder / "map.svg"
    write_svg(partial(draw_map, orbit=orbit), everywhere, width=8.4, height=4.9)
    return [*files, everywhere]


def _samples(orbit: Orbit, link: str) -> dict[str, Any]:
    """Return the samples of a path: column -> array."""
    table = orbit.tables["paths"]
    mine = np.array([name == link for name in table["link"]], dtype=bool)
    return {name: np.asarray(column)[mine] for name, column in table.items()}


def _runs(samples: Mapping[str, Any]) -> Iterator[slice]:
    """Yield the samples of the same satellites and gateway, one stretch after the other."""
    if not len(samples["at_s"]):
        return
    keys = np.char.add(np.char.add(samples["satellite"].astype(str), "\0"), samples["gateway"])
    changes = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    # A gap ends a run, too: samples are evenly spaced without one. Where others of the satellites
    # change, there are two samples of one time.
    spacing = np.diff(samples["at_s"])
    usual = max(np.median(spacing), 1e-9)
    gaps = np.flatnonzero((spacing > 1.5 * usual) | (spacing < 1e-6 * usual)) + 1
    edges = sorted({0, *changes.tolist(), *gaps.tolist(), len(keys)})
    for begins, ends in pairwise(edges):
        yield slice(begins, ends)


def draw_sky(figure: Figure, *, orbit: Orbit, link: str) -> None:
    """Draw the serving satellites over the terminal: azimuth around, elevation inwards."""
    samples = _samples(orbit, link)
    path = orbit.path(link)
    axes = figure.add_subplot(projection="polar")
    axes.set_theta_zero_location("N")  # type: ignore[attr-defined]
    axes.set_theta_direction(-1)  # type: ignore[attr-defined]
    axes.set_rlim(90.0, 0.0)  # type: ignore[attr-defined]
    axes.set_rgrids(  # type: ignore[attr-defined]
        [15, 30, 45, 60, 75], labels=["15", "30", "45", "60", "75 deg"], angle=22.5, fontsize=8
    )
    axes.set_thetagrids(  # type: ignore[attr-defined]
        np.arange(0, 360, 45), ["N", "NE", "E", "SE", "S", "SW", "W", "NW"]
    )
    runs = list(_runs(samples))
    for number, run in enumerate(runs[:_MOST_TRACKS]):
        colour = COLOURS[number % (len(COLOURS) - 1)]
        azimuth = np.radians(samples["azimuth_deg"][run])
        elevation = samples["elevation_deg"][run]
        axes.plot(azimuth, elevation, color=colour, linewidth=1.6)
        axes.plot(azimuth[:1], elevation[:1], "o", color=colour, markersize=3.5)
    least = next(
        site["min_elevation_deg"]
        for site in orbit.summary["sites"]
        if site["site"] == path["from"] and site["constellation"] == path["constellation"]
    )
    around = np.linspace(0.0, 2.0 * np.pi, 200)
    axes.plot(around, np.full_like(around, least), color="#444444", linewidth=0.8, linestyle="--")
    some = f"First {_MOST_TRACKS} of {len(runs):,} satellites" if len(runs) > _MOST_TRACKS else ""
    axes.set_title(
        f"{some or 'Satellites'} that serve {path['from']}, a dot where each begins\n"
        f"dashed: least elevation, {least:g} deg",
        fontsize=10,
        loc="center",
        pad=14,
    )


def draw_delay(figure: Figure, *, orbit: Orbit, link: str) -> None:
    """Draw the round trip and the elevation of a path over time; grey where it is interrupted."""
    samples = _samples(orbit, link)
    upper, lower = new_axes(figure, rows=2)
    long = bool(orbit.summary["duration_s"] > 7200.0)
    scale, unit = (3600.0, "h") if long else (1.0, "s")
    runs = list(_runs(samples))
    is_band = len(runs) > _MOST_RUNS
    for axes, name, factor in ((upper, "delay_s", 2e3), (lower, "elevation_deg", 1.0)):
        if is_band:
            _draw_band(axes, samples["at_s"] / scale, samples[name] * factor)
            continue
        for number, run in enumerate(runs):
            times, values = samples["at_s"][run] / scale, samples[name][run] * factor
            axes.plot(times, values, color=COLOURS[number % 2])
    outages = orbit.tables["outages"]
    for name, kind, at_s, lasts_s in zip(
        outages["link"], outages["kind"], outages["at_s"], outages["lasts_s"], strict=True
    ):
        if name == link and kind == "gap":
            for axes in (upper, lower):
                axes.axvspan(at_s / scale, (at_s + lasts_s) / scale, color="#DDDDDD", zorder=0)
    path = orbit.path(link)
    upper.set_ylabel("round trip (ms)")
    gateways = path["to"]
    end = " or ".join(gateways) if len(gateways) < 3 else f"{len(gateways)} gateways"
    told = "range and median" if is_band else "the colour changes with the satellites"
    upper.set_title(
        fill(
            f"{link}, {path['from']} to {end}: {path['handovers']:,} handovers; {told}",
            _TITLE_COLUMNS,
        ),
        fontsize=10,
    )
    lower.set_ylabel("elevation (deg)")
    lower.set_xlabel(f"time ({unit})")
    for axes in (upper, lower):
        axes.set_xlim(0.0, orbit.summary["duration_s"] / scale)


def _draw_band(axes: Axes, times: Floats, values: Floats) -> None:
    """Draw the range and the median of values in intervals, with space where there is no value."""
    edges = np.linspace(times[0], times[-1], _INTERVALS + 1)
    first = np.searchsorted(times, edges)
    parts = [values[begins:ends] for begins, ends in pairwise(first)]
    low, middle, high = np.array(
        [
            (part.min(), np.median(part), part.max()) if len(part) else (np.nan,) * 3
            for part in parts
        ]
    ).T
    centres = (edges[1:] + edges[:-1]) / 2.0
    axes.fill_between(centres, low, high, color=COLOURS[5], alpha=0.5, linewidth=0)
    axes.plot(centres, middle, color=COLOURS[0])


def draw_map(figure: Figure, *, orbit: Orbit) -> None:
    """Draw the satellites and the paths at the instant, with ground tracks of those in use."""
    axes = figure.subplots()
    for outline in land():
        for turn in (-360.0, 0.0, 360.0):
            axes.fill(
                outline[:, 0] + turn,
                outline[:, 1],
                facecolor=_LAND,
                edgecolor=_COAST,
                linewidth=0.5,
                zorder=1,
            )
    satellites = orbit.tables["satellites"]
    longitude, latitude = satellites["longitude_deg"], satellites["latitude_deg"]
    in_use = ~np.isnan(satellites["order_in_path"])
    size = 6.0 if len(longitude) > 500 else 12.0
    axes.scatter(
        longitude[~in_use], latitude[~in_use], s=size, color=_OTHER, linewidths=0, zorder=2
    )
    tracks = orbit.tables["tracks"]
    names = np.array(tracks["satellite"], dtype=object)
    for name in dict.fromkeys(tracks["satellite"]):
        mine = names == name
        _draw_line(
            axes,
            tracks["longitude_deg"][mine],
            tracks["latitude_deg"][mine],
            color=COLOURS[5],
            linewidth=0.9,
            zorder=3,
        )
    places = {
        site["site"]: (site["longitude_deg"], site["latitude_deg"])
        for site in orbit.summary["sites"]
    }
    seen = list(places.values())
    for number, path in enumerate(orbit.summary["paths"][:_MOST_PATHS]):
        points = _at_instant(orbit, path, places)
        if points is None:
            continue
        seen += points
        colour = COLOURS[number % 4]
        across, along = np.array(points).T
        _draw_line(axes, across, along, color=colour, linewidth=1.8, zorder=4, label=path["link"])
        axes.scatter(across[1:-1], along[1:-1], s=22, color=colour, linewidths=0, zorder=5)
    west, east, south, north = _extent(np.array(seen))
    for name, (longitude_deg, latitude_deg) in places.items():
        axes.plot(longitude_deg, latitude_deg, "^", color="#222222", markersize=6, zorder=6)
        near_edge = longitude_deg > east - 0.1 * (east - west)
        axes.annotate(
            name,
            (longitude_deg, latitude_deg),
            xytext=(-6 if near_edge else 6, 4),
            textcoords="offset points",
            ha="right" if near_edge else "left",
            fontsize=8,
            zorder=7,
        )
    axes.set_xlim(west, east)
    axes.set_ylim(south, north)
    axes.set_aspect("equal")
    step = next(step for step in (5, 10, 15, 30, 60) if step == 60 or east - west <= 8 * step)
    axes.set_xticks(np.arange(np.ceil(west / step), np.floor(east / step) + 1) * step)
    up = min(step, 30)
    axes.set_yticks(np.arange(np.ceil(south / up), np.floor(north / up) + 1) * up)
    axes.set_xlabel("longitude (deg)")
    axes.set_ylabel("latitude (deg)")
    axes.set_title(
        f"Satellites and paths at {orbit.at_s:g} s; ground tracks of 30 min. Land: Natural Earth",
        fontsize=10,
    )
    if orbit.summary["paths"]:
        legend_below(figure, axes)


def _extent(places: Floats) -> tuple[float, float, float, float]:
    """Return the edges of the map around places: west, east, south and north in degrees.

    Places on both sides of the date line, or far apart, need the whole Earth.
    """
    (west, south), (east, north) = places.min(axis=0) - _AROUND, places.max(axis=0) + _AROUND
    width = max(east - west, _RATIO * (north - south))
    if width > 200.0 or east > 180.0 or west < -180.0:
        return -180.0, 180.0, -90.0, 90.0
    middle = (west + east) / 2.0
    height = width / _RATIO
    bottom = min(max((south + north - height) / 2.0, -90.0), 90.0 - height)
    return middle - width / 2.0, middle + width / 2.0, bottom, bottom + height


def _at_instant(
    orbit: Orbit, path: Mapping[str, Any], places: Mapping[str, tuple[float, float]]
) -> list[tuple[float, float]] | None:
    """Return the places along a path at the instant, or None if there is no path then."""
    samples = _samples(orbit, path["link"])
    index = int(np.searchsorted(samples["at_s"], orbit.at_s, side="right")) - 1
    if index < 0:
        return None
    satellites = orbit.tables["satellites"]
    names = list(zip(satellites["constellation"], satellites["satellite"], strict=True))
    where = {name: place for place, name in enumerate(names)}
    between = []
    for satellite in path_satellites(orbit, path["link"]):
        place = where.get((path["constellation"], satellite))
        if place is None:
            return None
        between.append(
            (float(satellites["longitude_deg"][place]), float(satellites["latitude_deg"][place]))
        )
    return [places[path["from"]], *between, places[samples["gateway"][index]]]


def path_satellites(orbit: Orbit, link: str) -> list[str]:
    """Return the satellites of a link's path at the instant, in the order of its packets."""
    routes = orbit.tables["routes"]
    rows = zip(routes["link"], routes["satellite"], strict=True)
    return [satellite for name, satellite in rows if name == link]


def _draw_line(axes: Axes, longitude: Floats, latitude: Floats, **style: Any) -> None:
    """Draw a line that leaves the map at the date line and enters it on the other side."""
    jumps = np.flatnonzero(np.abs(np.diff(longitude)) > _ACROSS) + 1
    starts = [0, *jumps.tolist(), len(longitude)]
    label = style.pop("label", None)
    for begins, ends in pairwise(starts):
        across, along = longitude[begins:ends], latitude[begins:ends]
        if begins:
            turn = np.sign(across[0] - longitude[begins - 1]) * 360.0
            across = np.concatenate([[longitude[begins - 1] + turn], across])
            along = np.concatenate([[latitude[begins - 1]], along])
        if ends < len(longitude):
            turn = np.sign(longitude[ends] - across[-1]) * 360.0
            across = np.concatenate([across, [longitude[ends] - turn]])
            along = np.concatenate([along, [latitude[ends]]])
        axes.plot(across, along, label=label if begins == 0 else None, **style)
