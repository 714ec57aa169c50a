"""Parts of a study: cells to simulate, figures to draw, claims to check."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar

from bentpipe.studies.judging import Expectation, Values, holds

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from bentpipe.results import RunResult
    from bentpipe.scenario import Scenario


class Cell(Hashable, Protocol):
    """One simulation of a study, described by its parameters; equal cells run once."""

    def scenario(self) -> Scenario:
        """Return the scenario of the cell."""


CellT = TypeVar("CellT", bound=Cell)
_Evidence = TypeVar("_Evidence")
Outcomes = Mapping[CellT, "RunResult"]
Value = str | int | float | bool | None

PAPER: Final = "paper"
# Sources of claims, with the words that a reader sees.
SOURCES: Final[Mapping[str, str]] = {
    PAPER: "the paper",
    "bentpipe": "our own",
    "invariant": "our own: follows from the model or from arithmetic",
    "fitted": "our own: the setting was searched so that it holds",
}
# Kinds of causes of failing claims, with the words that a reader sees.
CAUSES: Final[Mapping[str, str]] = {
    "contradiction": "the paper contradicts itself",
    "setting": "holds under another setting",
    "statistical": "depends on the seed",
    "unresolved": "unresolved",
}


@dataclass(frozen=True, kw_only=True)
class Cause:
    """The reason why a claim fails in the full run.

    | kind | meaning | the text states |
    |---|---|---|
    | contradiction | The paper contradicts itself. | where |
    | setting | The claim holds under another setting. | which one, and the measured value |
    | statistical | The seeds disagree. | how many of how many |
    | unresolved | No cause was found. | what was tried |
    """

    kind: str
    text: str

    def __post_init__(self) -> None:
        if self.kind not in CAUSES:
            raise ValueError(f"cause {self.kind!r}; there are: {', '.join(CAUSES)}")
        if not self.text.strip():
            raise ValueError("a cause without a text")

    @property
    def kind_in_words(self) -> str:
        """The kind as a reader sees it."""
        return CAUSES[self.kind]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement that a run can check, fixed before anything was measured.

    * `published`: the paper's value or relation.
    * `tolerance`: relative; 0.02 is two per cent, and 0 means that the relation must hold exactly.
    * `expect`: the same as data, by measured quantity; with the tolerance, it decides whether the
      claim holds.
    * `source`: one of `SOURCES`.
    * `cause`: for a claim that fails in the full run.
    * `changed`: if it was changed after the first measurement, when, from what, and why.
    * `figures`: ids of the figures and tables with its evidence.
    """

    id: str
    section: str
    statement: str
    published: str
    tolerance: float
    reason: str
    expect: Mapping[str, Expectation]
    source: str = PAPER
    changed: str = ""
    cause: Cause | None = None
    figures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            known = ", ".join(SOURCES)
            raise ValueError(f"claim {self.id}: source {self.source!r}; there are: {known}")

    @property
    def is_published(self) -> bool:
        """Whether the paper makes the claim; all others are our own."""
        return self.source == PAPER

    @property
    def source_in_words(self) -> str:
        """The source as a reader sees it."""
        return SOURCES[self.source]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The measurement of a claim: in words, and as the numbers that are judged."""

    measured: str
    values: Values

    @classmethod
    def of_changes(
        cls, what: str, name: str, changes: Mapping[str, float], *, digits: int = 1
    ) -> Measurement:
        """Return a measurement of relative changes by subject.

        `name` is the quantity whose expectations apply, to the ratios.
        """
        listed = ", ".join(f"{change:+.{digits}%} ({of})" for of, change in changes.items())
        return cls(
            measured=f"{what}: {listed}",
            values={name: [1.0 + change for change in changes.values()]},
        )


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A claim and its measurement."""

    study: str
    claim: Claim
    measurement: Measurement

    @property
    def holds(self) -> bool:
        """Whether the claim holds, with its tolerance."""
        return holds(self.measurement.values, self.claim.expect, self.claim.tolerance)

    @property
    def inconsistency(self) -> str:
        """The contradiction between verdict and stated cause in a full run; empty if none."""
        if self.holds:
            return "holds, but states a cause" if self.claim.cause else ""
        return "" if self.claim.cause else "does not hold, and states no cause"

    def as_json(self) -> dict[str, Any]:
        """Return the claim as in `claims.json`; NaN is null there."""
        return {
            "study": self.study,
            "id": self.claim.id,
            "section": self.claim.section,
            "source": self.claim.source,
            "statement": self.claim.statement,
            "published": self.claim.published,
            "measured": self.measurement.measured,
            "tolerance": self.claim.tolerance,
            "reason": self.claim.reason,
            "changed": self.claim.changed or None,
            "cause": None if self.claim.cause is None else asdict(self.claim.cause),
            "figures": list(self.claim.figures),
            "expect": {
                name: {key: bound for key, bound in asdict(each).items() if bound is not None}
                for name, each in self.claim.expect.items()
            },
            "values": {
                name: [float(each) if isfinite(each) else None for each in values]
                for name, values in self.measurement.values.items()
            },
            "holds": self.holds,
        }


def tally(verdicts: Iterable[Verdict]) -> str:
    """Return how many claims hold: those of the papers, and our own."""
    counts = []
    listed = list(verdicts)
    for published, name in ((True, "the papers' claims"), (False, "our own claims")):
        some = [each for each in listed if each.claim.is_published == published]
        if some:
            held = sum(each.holds for each in some)
            counts.append(f"{held} of {len(some)} of {name}")
    return f"{' and '.join(counts)} hold" if counts else "no claims"


@dataclass(frozen=True, kw_only=True)
class _Exhibit:
    """A figure or a table: columns of equal length by their heads, with a number and a caption."""

    kind: ClassVar[str]

    id: str
    title: str
    caption: str
    columns: Mapping[str, Sequence[Value]]

    @property
    def name(self) -> str:
        """The name of its files and of its place in the report."""
        return f"{self.kind}-{self.id}"


@dataclass(frozen=True, kw_only=True)
class Figure(_Exhibit):
    """A figure and its numbers."""

    kind = "figure"

    draw: Callable[[Canvas], None]
    width: float = 7.2
    height: float = 4.4


@dataclass(frozen=True, kw_only=True)
class Table(_Exhibit):
    """A table, shown as an HTML table in the report.

    `marked` says by column which values the report emphasises.
    """

    kind = "table"

    marked: Mapping[str, Sequence[bool]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of a study: its value in the paper and in the run.

    `open` is true if the paper leaves it open.
    """

    name: str
    paper: str
    run: str
    open: bool = False


def _no_remarks() -> Sequence[str]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """The results of the cells: figures and tables, and a measurement for every claim.

    Access to an outcome waits for its simulation. Figures made one after the other are therefore
    drawn while the runs of later ones are simulated. Results that need all runs are functions.
    """

    figures: Iterable[Figure | Table]
    measurements: Callable[[], Mapping[str, Measurement]]
    # Further paragraphs for the reader, with the numbers of this run.
    remarks: Callable[[], Sequence[str]] = _no_remarks

    @classmethod
    def of(
        cls,
        evidence: _Evidence,
        figures: Iterable[Figure | Table],
        measure: Callable[[_Evidence], Mapping[str, Measurement]],
        remarks: Callable[[_Evidence], Sequence[str]],
    ) -> Analysis:
        """Return the analysis whose measurements and remarks are of the same evidence."""
        return cls(
            figures=figures,
            measurements=partial(measure, evidence),
            remarks=partial(remarks, evidence),
        )


@dataclass(frozen=True, kw_only=True)
class Study(Generic[CellT]):
    """A paper to reproduce.

    `cells` returns the cells to simulate, fewer if `quick`. `analyse` turns their outcomes into
    figures and measurements. `identifier` is the paper's DOI as a URL, or its report number.
    """

    key: str
    title: str
    reference: str
    summary: str
    claims: Sequence[Claim]
    cells: Callable[[bool], Sequence[CellT]]
    analyse: Callable[[Outcomes[CellT]], Analysis]
    identifier: str = ""
    parameters: Sequence[Parameter] = ()

    @classmethod
    def of(
        cls,
        folder: Path,
        *,
        cells: Callable[[bool], Sequence[CellT]],
    ) -> Study[CellT]:
        """Read a study's description and claims from the `claims.toml` in its folder.

        Its `analyse` is that of its `analysis` module. This is imported only when needed, because
        the import of plotting libraries takes longer than most simulations.

        Raises
        ------
        KeyError
            `title`, `reference` or `summary` is missing.
        ValueError
            Two claims have the same id.
        """
        path = folder / "claims.toml"
        with path.open("rb") as file:
            said = tomllib.load(file)

        def analyse(outcomes: Outcomes[CellT]) -> Analysis:
            analysis: Analysis = import_module(f"bentpipe.studies.{folder.name}.analysis").analyse(
                outcomes
            )
            return analysis

        return cls(
            key=folder.name.replace("_", "-"),
            title=said["title"],
            reference=said["reference"],
            summary=said["summary"],
            claims=read_claims(path),
            cells=cells,
            analyse=analyse,
            identifier=said.get("identifier", ""),
            parameters=tuple(Parameter(**each) for each in said.get("parameter", ())),
        )


def read_claims(path: Path) -> tuple[Claim, ...]:
    """Read a `claims.toml`: a list of `[[claim]]` tables.

    Raises
    ------
    ValueError
        Two claims have the same id.
    """
    with path.open("rb") as file:
        claims = tuple(_claim(table) for table in tomllib.load(file)["claim"])
    ids = [claim.id for claim in claims]
    repeated = {each for each in ids if ids.count(each) > 1}
    if repeated:
        raise ValueError(f"{path.name}: more than one claim {', '.join(sorted(repeated))}")
    return claims


def _claim(table: Mapping[str, Any]) -> Claim:
    read: dict[str, Any] = {
        "expect": {name: Expectation(**bounds) for name, bounds in table["expect"].items()},
        "figures": tuple(table.get("figures", ())),
    }
    if "cause" in table:
        read["cause"] = Cause(**table["cause"])
    return Claim(**{**table, **read})


def measuring(
    folder: Path, measures: Mapping[str, Callable[[_Evidence, Claim], Measurement]]
) -> Callable[[_Evidence], dict[str, Measurement]]:
    """Return a function that measures every claim of a folder's `claims.toml` by its id."""

    def measure(evidence: _Evidence) -> dict[str, Measurement]:
        claims = read_claims(folder / "claims.toml")
        return {claim.id: measures[claim.id](evidence, claim) for claim in claims}

    return measure
