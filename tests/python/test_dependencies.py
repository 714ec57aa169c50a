"""deny.toml's rules: what the check of dependencies accepts and refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import load_script

TOOL = load_script(Path(__file__).parents[2] / "tools/check_dependencies.py")
RULES: dict[str, Any] = {
    "licenses": {"allow": ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]},
    "bans": {"deny": [{"name": "openssl"}], "skip": [{"name": "syn"}]},
}


@pytest.mark.parametrize(
    ("expression", "met"),
    [
        ("MIT", True),
        ("GPL-3.0", False),
        ("MIT/GPL-3.0", True),
        ("GPL-3.0 OR MIT", True),
        ("MIT AND GPL-3.0", False),
        ("(MIT OR GPL-3.0) AND Apache-2.0", True),
        ("(MIT OR GPL-3.0) AND BSD-3-Clause", False),
        ("GPL-3.0 AND MIT OR Apache-2.0", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MIT WITH LLVM-exception", False),
        ("(MIT", False),
        ("", False),
    ],
)
def test_licence_expressions(expression: str, met: bool) -> None:
    assert TOOL.is_met(expression, set(RULES["licenses"]["allow"])) is met


def package(name: str, **other: Any) -> dict[str, Any]:
    """Return a package as `cargo metadata` prints it; `other` replaces keys."""
    usual = {"version": "1.0.0", "license": "MIT", "source": "registry+usual", "dependencies": []}
    made = {"name": name, **usual, **other}
    return {"id": f"{name} {made['version']}", **made}


SYN = [package("syn"), package("syn", version="2.0.0")]


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        ([], []),
        ([package("a", license=None)], ["a 1.0.0: licence None is not allowed"]),
        ([package("a", license="GPL-3.0")], ["a 1.0.0: licence 'GPL-3.0' is not allowed"]),
        ([package("openssl")], ["openssl 1.0.0: banned"]),
        ([package("a"), package("a", version="2.0.0")], ["a: versions 1.0.0, 2.0.0"]),
        ([package("a", source="git+elsewhere")], ["a 1.0.0: source git+elsewhere"]),
        ([package("a", source="registry+other")], ["a 1.0.0: registry registry+other"]),
        ([package("a", source=None)], ["a 1.0.0: a path outside of the workspace"]),
    ],
)
def test_each_rule_names_the_package(packages: list[dict[str, Any]], expected: list[str]) -> None:
    metadata = {"packages": [*SYN, *packages], "workspace_members": []}
    assert list(TOOL.findings(metadata, RULES)) == expected


def test_any_version_and_needless_exceptions_are_refused() -> None:
    wild = [{"name": "syn", "req": "*"}, {"name": "own", "req": "*", "path": "../own"}]
    member = package("own", source=None, dependencies=wild)
    metadata = {"packages": [member], "workspace_members": [member["id"]]}
    assert list(TOOL.findings(metadata, RULES)) == [
        "own 1.0.0: any version of syn",
        "syn: skipped without need",
    ]
