"""Samples that probes recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """A probe's samples: columns of equal length, and the unit of the values."""

    times_s: NDArray[np.float64]
    values: NDArray[np.float64]
    unit: str


@runtime_checkable
class SeriesByParts(Protocol):
    """Series that are read in parts, because those in a file may not fit into memory."""

    def parts(self, name: str) -> Iterator[Series]:
        """Yield a series' parts in order of time; no part is empty."""
        ...

    def outline(self, name: str) -> Series:
        """Return a series, reduced to as many points as a plot can show."""
        ...


class Subject(Mapping[str, Series]):
    """The probes of one flow or link direction, by name without the flow or direction."""

    def __init__(self, whole: Mapping[str, Series], subject: str, quantities: Set[str]) -> None:
        self._whole = whole
        self._subject = subject
        self._quantities = sorted(quantities)

    def __getitem__(self, quantity: str) -> Series:
        """Return a whole series."""
        if quantity not in self._quantities:
            raise KeyError(quantity)
        return self._whole[f"{self._subject}.{quantity}"]

    def __contains__(self, quantity: object) -> bool:
        """Whether there is such a quantity; does not read its samples."""
        return quantity in self._quantities

    def __iter__(self) -> Iterator[str]:
        """Iterate over the quantities."""
        return iter(self._quantities)

    def __len__(self) -> int:
        """Return the number of quantities."""
        return len(self._quantities)

    def parts(self, quantity: str) -> Iterator[Series]:
        """Yield a series' parts in order of time."""
        return parts(self._whole, f"{self._subject}.{quantity}")

    def outline(self, quantity: str) -> Series:
        """Return a series, reduced to as many points as a plot can show."""
        return outline(self._whole, f"{self._subject}.{quantity}")


def parts(probes: Mapping[str, Series], name: str) -> Iterator[Series]:
    """Yield a series in parts, in order of time; a series in memory is one part."""
    if isinstance(probes, SeriesByParts):
        yield from probes.parts(name)
    elif len(probes[name].times_s):
        yield probes[name]


def outline(probes: Mapping[str, Series], name: str) -> Series:
    """Return a series for a plot; one in a file is reduced to the points that the plot can show."""
    return probes.outline(name) if isinstance(probes, SeriesByParts) else probes[name]
