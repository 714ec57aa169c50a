"""Figures, tables, measurements and remarks from the outcomes of the cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bentpipe.studies.gaid1998.cells import SETS
from bentpipe.studies.gaid1998.centre import centre_figure
from bentpipe.studies.gaid1998.comparison import open_settings_figures, remedies_figure
from bentpipe.studies.gaid1998.diagrams import diagrams_after_table_1, diagrams_before_table_1
from bentpipe.studies.gaid1998.evidence import Evidence
from bentpipe.studies.gaid1998.figures import figures
from bentpipe.studies.gaid1998.fragmentation import arp_table, mtu_table
from bentpipe.studies.gaid1998.future import broadcast_figure, memory_figure, merged_figure
from bentpipe.studies.gaid1998.measurements import measure
from bentpipe.studies.gaid1998.policies import policy_figures
from bentpipe.studies.gaid1998.probes import probe_figures
from bentpipe.studies.gaid1998.remarks import remarks
from bentpipe.studies.gaid1998.tables import TABLES, outputs_table, parameters_table
from bentpipe.studies.study import Analysis, Figure, Outcomes, Table

if TYPE_CHECKING:
    from bentpipe.studies.gaid1998.runs import Cell


def analyse(outcomes: Outcomes[Cell]) -> Analysis:
    """Draw the figures and measure the claims."""
    evidence = Evidence(outcomes)
    return Analysis.of(evidence, _in_order(evidence), measure, remarks)


def _in_order(evidence: Evidence) -> Iterator[Figure | Table]:
    """Yield figures and tables in the order of the paper, then the additional ones."""
    yield from diagrams_before_table_1()
    yield mtu_table(evidence)
    yield from diagrams_after_table_1(evidence)
    yield outputs_table()
    for number in SETS:
        if number in TABLES:
            yield parameters_table(number)
        yield from figures(evidence, number)
    yield remedies_figure(evidence)
    settings_figure, settings_table = open_settings_figures()
    yield settings_figure
    yield centre_figure(evidence)
    yield merged_figure(evidence)
    yield broadcast_figure(evidence)
    yield from probe_figures(evidence)
    yield memory_figure(evidence)
    yield from policy_figures(evidence)
    yield arp_table(evidence)
    yield settings_table
