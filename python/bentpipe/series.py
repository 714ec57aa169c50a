"""What probes recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """A probe's samples: equally long columns, and the values' unit."""

    times_s: NDArray[np.float64]
    values: NDArray[np.float64]
    unit: str


@runtime_checkable
class InParts(Protocol):
    """Series that are better read part by part: those in a file may not fit into memory."""

    def parts(self, name: str) -> Iterator[Series]:
        """Yield a series' parts, in the order of time; none of them is empty."""
        ...

    def outline(self, name: str) -> Series:
        """Return a series with as many of its points as a plot can show."""
        ...


class Subject(Mapping[str, Series]):
    """The probes of one flow or link direction, under their names without the subject's."""

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
        """Whether there is such a quantity: known without reading it."""
        return quantity in self._quantities

    def __iter__(self) -> Iterator[str]:
        """Iterate over the quantities."""
        return iter(self._quantities)

    def __len__(self) -> int:
        """Return the number of quantities."""
        return len(self._quantities)

    def parts(self, quantity: str) -> Iterator[Series]:
        """Yield a series' parts, in the order of time."""
        return parts(self._whole, f"{self._subject}.{quantity}")

    def outline(self, quantity: str) -> Series:
        """Return a series with as many of its points as a plot can show."""
        return outline(self._whole, f"{self._subject}.{quantity}")


def parts(probes: Mapping[str, Series], name: str) -> Iterator[Series]:
    """Yield a series part by part, in the order of time: what is in memory, as one."""
    if isinstance(probes, InParts):
        yield from probes.parts(name)
    elif len(probes[name].times_s):
        yield probes[name]


def outline(probes: Mapping[str, Series], name: str) -> Series:
    """Return a series for a plot: of one in a file, no more points than it can show."""
    return probes.outline(name) if isinstance(probes, InParts) else probes[name]
