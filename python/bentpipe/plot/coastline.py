"""The Earth's land as polygons: Natural Earth at 1:110m (land-110m.LICENSE)."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@cache
def land() -> tuple[Floats, ...]:
    """Return the outlines of land: arrays of longitude and latitude in degrees.

    Longitudes are continuous along an outline, so those at the date line exceed 180 degrees.
    """
    text = files("bentpipe.plot").joinpath("land-110m.json").read_text(encoding="utf-8")
    topology = json.loads(text)
    scale = np.array(topology["transform"]["scale"])
    offset = np.array(topology["transform"]["translate"])
    # An arc is its first point and the differences between points, in whole steps.
    arcs = [np.cumsum(np.array(arc), axis=0) * scale + offset for arc in topology["arcs"]]

    def ring(indices: list[int]) -> Floats:
        # A negative index is an arc backwards.
        parts = [arcs[index] if index >= 0 else arcs[~index][::-1] for index in indices]
        return np.concatenate([parts[0], *(part[1:] for part in parts[1:])])

    polygons = topology["objects"]["land"]["geometries"][0]["arcs"]
    return tuple(_unrolled(ring(indices)) for polygon in polygons for indices in polygon)


def _unrolled(outline: Floats) -> Floats:
    """Return an outline whose longitudes go on beyond 180 degrees at the date line.

    The outline around a pole, which ends a whole turn from its start, is closed along that pole.
    """
    longitude = np.unwrap(outline[:, 0], period=360.0)
    unrolled = np.column_stack([longitude, outline[:, 1]])
    if abs(longitude[-1] - longitude[0]) < 180.0:
        return unrolled
    pole = 90.0 if outline[:, 1].mean() > 0.0 else -90.0
    along = np.array([[longitude[-1], pole], [longitude[0], pole]])
    return np.concatenate([unrolled, along])
