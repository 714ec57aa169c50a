"""Properties that entries of the engine's tables declare; closed forms and advice use them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import bentpipe
from bentpipe import kinds
from bentpipe.prediction.models import LOSS_LAWS

PACKAGE = Path(bentpipe.__file__).parent


def test_window_rules_declare_their_answer_to_a_loss() -> None:
    kept = {name: rule.kept_after_loss for name, rule in kinds.window_rules().items()}
    # RFC 5681 equation 4, RFC 9438 section 4.6.
    assert kept["reno"] == 0.5
    assert kept["cubic"] == 0.7
    assert kept["bbr"] is None
    products = {name for name, rule in kinds.window_rules().items() if rule.keeps_product}
    assert products == {"westwood", "westwood-2001"}
    paced = {name for name, rule in kinds.window_rules().items() if rule.measures_rate}
    assert paced == {"bbr", "bbr1", "bbr3"}


def test_each_law_of_random_losses_has_a_formula() -> None:
    laws = {rule.loss_law for rule in kinds.window_rules().values()} - {None}
    assert laws == set(LOSS_LAWS)


def test_a_rule_of_the_users_own_has_no_properties() -> None:
    mine = kinds.window_rule("mine")
    assert mine.loss_law is None
    assert mine.kept_after_loss is None
    assert not mine.measures_rate


def test_applications_have_a_place_beside_others() -> None:
    assert kinds.with_role("call") == ("voice", "video-call")
    assert kinds.with_role("call", "real-time") == ("voice", "video-call", "packets")
    assert kinds.with_role("background") == ("bulk", "ftp")


def test_a_host_does_nothing_for_connections() -> None:
    assert not kinds.gateway_kind("host").acts_on_connections
    assert not kinds.gateway_kind("router").acts_on_connections
    assert kinds.gateway_kind("split").ends_connections
    assert kinds.gateway_kind("hybrid").acknowledges


@pytest.mark.parametrize("part", ["prediction", "advice"])
def test_queues_and_gateways_are_not_told_apart_by_name(part: str) -> None:
    names = {*kinds.queues(), *kinds.gateways()}
    found = [
        f"{file.name}:{line}: {name}"
        for file in sorted((PACKAGE / part).glob("*.py"))
        for name, line in _compared(ast.parse(file.read_text("utf-8")))
        if name in names
    ]
    # Advice asks whether the engine has the queue that it proposes.
    proposals = {"priority", "fair", "fq-codel"}
    assert [each for each in found if each.rpartition(" ")[2] not in proposals] == []


def _compared(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the strings that a module compares something with, and their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for side in ast.walk(node):
                if isinstance(side, ast.Constant) and isinstance(side.value, str):
                    yield side.value, side.lineno
