"""The numbers of the paper's text, and how each is measured in a run of ten minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.studies.judging import Expectation
from bentpipe.studies.vanzara2014.cells import Setting, Transfer
from bentpipe.studies.vanzara2014.evidence import TIMES_S, received_bits

if TYPE_CHECKING:
    from bentpipe.results import RunResult


@dataclass(frozen=True, kw_only=True)
class PublishedGoodput:
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

    @cached_property
    def expect(self) -> Expectation:
        """The expectation of a measured value, which the tolerance widens."""
        if self.relation == "below":
            return Expectation(less_than=self.mbps)
        return Expectation(value=self.mbps)

    @property
    def tolerance(self) -> float:
        """The relative tolerance."""
        if self.relation == "below":
            return 0.0
        return 0.05 if self.mbps >= 90 else 0.2

    def transfer(self, setting: Setting) -> Transfer:
        """Return the run in which it is measured, with the first seed."""
        return Transfer(
            rule=self.rule,
            bit_error_rate=self.bit_error_rate,
            setting=setting.of(self.rule, self.bit_error_rate),
        )

    def measured_mbps(self, outcome: RunResult) -> float:
        """Return the number as measured in a run."""
        bits = received_bits(outcome)
        if self.first_bytes is not None:
            wanted = 8.0 * self.first_bytes
            if bits[-1] < wanted:
                # The amount is not reached in ten minutes: the goodput until then.
                return float(bits[-1] / TIMES_S[-1] / 1e6)
            after = int((bits >= wanted).argmax())
            before_bits, before_s = (bits[after - 1], TIMES_S[after - 1]) if after else (0.0, 0.0)
            share = (wanted - before_bits) / (bits[after] - before_bits)
            return float(wanted / (before_s + share * (TIMES_S[after] - before_s)) / 1e6)
        end = int(np.searchsorted(TIMES_S, self.until_s))
        start_bits = 0.0
        if self.after_s:
            start_bits = bits[int(np.searchsorted(TIMES_S, self.after_s))]
        return float((bits[end] - start_bits) / (self.until_s - self.after_s) / 1e6)


_enhanced = partial(PublishedGoodput, rule="enhanced-hybla")

PUBLISHED: Final[Sequence[PublishedGoodput]] = (
    PublishedGoodput(
        label="Hybla, 0, 90-100 s: 96",
        rule="hybla",
        bit_error_rate=0.0,
        mbps=96,
        after_s=90,
        until_s=100,
    ),
    _enhanced(
        label="Enhanced, 0, 90-100 s: 96", bit_error_rate=0.0, mbps=96, after_s=90, until_s=100
    ),
    PublishedGoodput(
        label="Westwood, 1e-8: < 50",
        rule="westwood",
        bit_error_rate=1e-8,
        mbps=50,
        relation="below",
    ),
    PublishedGoodput(
        label="Westwood, 1e-8, 2 GB: 50",
        rule="westwood",
        bit_error_rate=1e-8,
        mbps=50,
        first_bytes=2_000_000_000,
    ),
    PublishedGoodput(label="Hybla, 1e-8: 50", rule="hybla", bit_error_rate=1e-8, mbps=50),
    PublishedGoodput(
        label="Hybla, 1e-8, 100 MB: 53",
        rule="hybla",
        bit_error_rate=1e-8,
        mbps=53,
        first_bytes=100_000_000,
    ),
    PublishedGoodput(
        label="Hybla, 1e-8, 500 MB: 41",
        rule="hybla",
        bit_error_rate=1e-8,
        mbps=41,
        first_bytes=500_000_000,
    ),
    _enhanced(label="Enhanced, 1e-8: 96", bit_error_rate=1e-8, mbps=96),
    PublishedGoodput(label="Westwood, 1e-7: 17", rule="westwood", bit_error_rate=1e-7, mbps=17),
    PublishedGoodput(
        label="Westwood, 1e-7, 2 GB: 10",
        rule="westwood",
        bit_error_rate=1e-7,
        mbps=10,
        first_bytes=2_000_000_000,
    ),
    PublishedGoodput(label="Hybla, 1e-7: 12", rule="hybla", bit_error_rate=1e-7, mbps=12),
    PublishedGoodput(
        label="Hybla, 1e-7, 100 MB: 11",
        rule="hybla",
        bit_error_rate=1e-7,
        mbps=11,
        first_bytes=100_000_000,
    ),
    _enhanced(label="Enhanced, 1e-7: 96", bit_error_rate=1e-7, mbps=96),
    PublishedGoodput(
        label="Westwood, 1e-6: < 0.5",
        rule="westwood",
        bit_error_rate=1e-6,
        mbps=0.5,
        relation="below",
    ),
    _enhanced(label="Enhanced, 1e-6: 96", bit_error_rate=1e-6, mbps=96),
    PublishedGoodput(
        label="Westwood, 1e-5: < 0.1",
        rule="westwood",
        bit_error_rate=1e-5,
        mbps=0.1,
        relation="below",
    ),
    PublishedGoodput(label="Hybla, 1e-5: 2", rule="hybla", bit_error_rate=1e-5, mbps=2),
    _enhanced(label="Enhanced, 1e-5, from 200 s: 90", bit_error_rate=1e-5, mbps=90, after_s=200),
)

# The goodputs of the text by figure, as points: times in s, error rates or file sizes in MB, and
# Mbit/s. A bound ("less than 0.5") is marked at its value.
MARKS: Final[Mapping[str, Sequence[tuple[float, float]]]] = {
    "2": ((100, 96),),
    "3": ((600, 50), (600, 96)),
    "4": ((600, 17), (600, 12), (600, 96)),
    "5": ((600, 0.5), (200, 96)),
    "6": ((600, 0.1), (600, 2), (200, 90)),
    "8": (
        (1e-8, 50),
        (1e-7, 17),
        (1e-7, 12),
        (1e-7, 96),
        (1e-6, 0.5),
        (1e-6, 96),
        (1e-5, 0.1),
        (1e-5, 2),
        (1e-5, 90),
    ),
    "9": ((500, 96), (2000, 96)),
    "10": ((100, 53), (500, 41), (1000, 50), (2000, 50)),
    "11": ((2000, 10), (100, 11), (500, 11), (1000, 11), (500, 90), (1000, 90), (2000, 90)),
}
# "Hybla operates around 50 Mbps", whatever the round-trip time.
FIGURE_7_HYBLA_MBPS: Final = 50.0
