"""Variation of unstated parameters: the published values that each setting reproduces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from bentpipe.studies.judging import Expectation
from bentpipe.studies.vanzara2014.cells import SETTINGS, Setting, Transfer
from bentpipe.studies.vanzara2014.evidence import TIMES_S, Evidence


@dataclass(frozen=True, kw_only=True)
class Published:
    """A number of the paper's text: goodput over ten minutes, or over their beginning.

    `relation` is "about" (within 20%, and within 5% from 90 on) or "below".
    """

    label: str
    rule: str
    bit_error_rate: float
    mbps: float
    relation: str = "about"
    first_bytes: int | None = None
    after_s: float = 0.0
    until_s: float = 600.0

    def holds(self, mbps: float) -> bool:
        """Return whether a measured value reproduces it."""
        if self.relation == "below":
            return Expectation(less_than=self.mbps).met(mbps, 0.0)
        return Expectation(value=self.mbps).met(mbps, 0.05 if self.mbps >= 90 else 0.2)


def _enhanced(label: str, rate: float, mbps: float, **options: float) -> Published:
    after_s = options.get("after_s", 0.0)
    until_s = options.get("until_s", 600.0)
    return Published(
        label=label,
        rule="enhanced-hybla",
        bit_error_rate=rate,
        mbps=mbps,
        after_s=after_s,
        until_s=until_s,
    )


PUBLISHED: Final[Sequence[Published]] = (
    Published(
        label="Hybla, 0, 90-100 s: 96", rule="hybla", bit_error_rate=0.0, mbps=96, after_s=90,
        until_s=100,
    ),
    _enhanced("Enhanced, 0, 90-100 s: 96", 0.0, 96, after_s=90, until_s=100),
    Published(label="Westwood, 1e-8: < 50", rule="westwood", bit_error_rate=1e-8, mbps=50,
              relation="below"),
    Published(label="Westwood, 1e-8, 2 GB: 50", rule="westwood", bit_error_rate=1e-8, mbps=50,
              first_bytes=2_000_000_000),
    Published(label="Hybla, 1e-8: 50", rule="hybla", bit_error_rate=1e-8, mbps=50),
    Published(label="Hybla, 1e-8, 100 MB: 53", rule="hybla", bit_error_rate=1e-8, mbps=53,
              first_bytes=100_000_000),
    Published(label="Hybla, 1e-8, 500 MB: 41", rule="hybla", bit_error_rate=1e-8, mbps=41,
              first_bytes=500_000_000),
    _enhanced("Enhanced, 1e-8: 96", 1e-8, 96),
    Published(label="Westwood, 1e-7: 17", rule="westwood", bit_error_rate=1e-7, mbps=17),
    Published(label="Westwood, 1e-7, 2 GB: 10", rule="westwood", bit_error_rate=1e-7, mbps=10,
              first_bytes=2_000_000_000),
    Published(label="Hybla, 1e-7: 12", rule="hybla", bit_error_rate=1e-7, mbps=12),
    Published(label="Hybla, 1e-7, 100 MB: 11", rule="hybla", bit_error_rate=1e-7, mbps=11,
              first_bytes=100_000_000),
    _enhanced("Enhanced, 1e-7: 96", 1e-7, 96),
    Published(label="Westwood, 1e-6: < 0.5", rule="westwood", bit_error_rate=1e-6, mbps=0.5,
              relation="below"),
    _enhanced("Enhanced, 1e-6: 96", 1e-6, 96),
    Published(label="Westwood, 1e-5: < 0.1", rule="westwood", bit_error_rate=1e-5, mbps=0.1,
              relation="below"),
    Published(label="Hybla, 1e-5: 2", rule="hybla", bit_error_rate=1e-5, mbps=2),
    _enhanced("Enhanced, 1e-5, from 200 s: 90", 1e-5, 90, after_s=200),
)  # fmt: skip


class Sweep:
    """Every simulated setting beside every published value."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    @cached_property
    def names(self) -> list[str]:
        """The settings."""
        return [
            name
            for name, setting in SETTINGS.items()
            if all(self._evidence.has(_transfer(setting, each)) for each in PUBLISHED)
        ]

    @cached_property
    def measured(self) -> Mapping[tuple[str, str], float]:
        """Mbit/s by setting and published value, of the first seed."""
        return {
            (name, each.label): self._mbps(name, each) for name in self.names for each in PUBLISHED
        }

    def reproduced(self, name: str) -> int:
        """Return how many published values a setting reproduces."""
        return sum(each.holds(self.measured[name, each.label]) for each in PUBLISHED)

    @cached_property
    def never(self) -> list[str]:
        """The published values that no setting reproduces."""
        return [
            each.label
            for each in PUBLISHED
            if not any(each.holds(self.measured[name, each.label]) for name in self.names)
        ]

    @cached_property
    def best(self) -> list[str]:
        """The settings that reproduce the most."""
        most = max(self.reproduced(name) for name in self.names)
        return [name for name in self.names if self.reproduced(name) == most]

    def _mbps(self, name: str, published: Published) -> float:
        # The first seed of every setting, so that all meet the same errors.
        bits = self._evidence.delivered_bits(_transfer(SETTINGS[name], published))
        if published.first_bytes is not None:
            wanted = 8.0 * published.first_bytes
            if bits[-1] < wanted:
                # The amount is not reached in ten minutes: the goodput until then.
                return float(bits[-1] / TIMES_S[-1] / 1e6)
            after = int((bits >= wanted).argmax())
            before_bits, before_s = (bits[after - 1], TIMES_S[after - 1]) if after else (0.0, 0.0)
            share = (wanted - before_bits) / (bits[after] - before_bits)
            return float(wanted / (before_s + share * (TIMES_S[after] - before_s)) / 1e6)
        end = int(np.searchsorted(TIMES_S, published.until_s))
        start_bits = 0.0
        if published.after_s:
            start_bits = bits[int(np.searchsorted(TIMES_S, published.after_s))]
        return float((bits[end] - start_bits) / (published.until_s - published.after_s) / 1e6)


def _transfer(setting: Setting, published: Published) -> Transfer:
    return Transfer(
        rule=published.rule,
        bit_error_rate=published.bit_error_rate,
        setting=setting.of(published.rule, published.bit_error_rate),
    )
