"""The arrows of ARCHITECTURE.md between Python modules: imports go one way only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import bentpipe

PACKAGE = Path(bentpipe.__file__).parent

# Permitted imports, the lowest layer first. All others are errors.
BASE = {"errors", "files", "groups", "processors", "signals", "toml", "units"}
MAY_IMPORT: dict[str, set[str]] = {
    "signals": set(),
    "errors": set(),
    "files": set(),
    "groups": set(),
    "toml": set(),
    "units": set(),
    # Formulas: numpy only.
    "model": set(),
    # Rules of the user's own, which every run knows.
    "congestion": {"_native", *BASE},
    "keys": {"_native"},
    # Properties that entries of the engine's tables declare.
    "kinds": {"_native"},
    "processors": set(),
    "scenario": {"_native", "congestion", *BASE},
    "series": set(),
    # Names for what is in a summary.
    "application_metrics": set(),
    # Imported by the engine module only.
    "parquet_table": set(),
    "arrow_columns": set(),
    "row_groups": set(),
    "probe_file": {"arrow_columns", "row_groups", "series"},
    "results": {
        *("_native", "congestion", "frames", "notebook", "probe_file", "scenario", "series"),
        *BASE,
    },
    # Ranges over several runs of a scenario.
    "seed_ranges": {"application_metrics", "results", "scenario", "sweeps", *BASE},
    # A result as another tool's data file; a test of its in the place of flows.
    "flent": {"results", "scenario", *BASE},
    # Measurements of a real network in, a scenario out.
    "fit": {"_native", "results", "scenario", *BASE},
    # Representations of a result elsewhere; imported when they are requested.
    "frames": {"probe_file", "results", "series"},
    "notebook": {
        *("advice", "application_metrics", "plot", "prediction", "results", "sweeps"),
        *BASE,
    },
    # Window rules in the running kernel.
    "kernel_rules": {*BASE},
    "emulation": {"_native", "congestion", "kernel_rules", "results", "scenario", *BASE},
    "comparison": {
        *("emulation", "prediction", "results", "scenario", "application_metrics", "seed_ranges"),
        *BASE,
    },
    "prediction": {
        *("_native", "kinds", "model", "notebook", "plot", "results", "scenario"),
        *BASE,
    },
    "orbits": {"_native", "congestion", "scenario", *BASE},
    # Advice, fits, orbits and prediction are imported for their types only.
    "plot": {
        *("advice", "comparison", "fit", "orbits", "prediction", "results", "scenario", "series"),
        *BASE,
    },
    "sweeps": {"_native", "congestion", "notebook", "plot", "results", "scenario", *BASE},
    # The runner hands what it did to the report, which only knows the runner's types.
    "studies": {
        *("_native", "arrow_columns", "model", "orbits", "plot", "prediction", "probe_file"),
        *("report", "results", "scenario", "sweeps", *BASE),
    },
    # A rule beside others, by the machinery of studies.
    "evaluation": {
        *("_native", "arrow_columns", "congestion", "plot", "report", "results", "scenario"),
        *("studies", "sweeps", *BASE),
    },
    "report": {"_native", "plot", "results", "scenario", "studies", *BASE},
    "scenario_report": {
        *("_native", "advice", "application_metrics", "plot", "prediction", "report", "results"),
        *("scenario", "seed_ranges", "studies", "sweeps", *BASE),
    },
    "advice": {
        *(
            "_native",
            "kinds",
            "notebook",
            "plot",
            "prediction",
            "results",
            "scenario",
            "seed_ranges",
            "sweeps",
            "application_metrics",
        ),
        *BASE,
    },
    # Runs commands as processes.
    "serving": BASE,
    "cli": {
        *(
            "_native",
            "advice",
            "comparison",
            "emulation",
            "evaluation",
            "fit",
            "flent",
            "kernel_rules",
            "keys",
            "kinds",
            "model",
            "orbits",
            "plot",
            "prediction",
            "report",
            "results",
            "scenario",
            "scenario_report",
            "seed_ranges",
            "serving",
        ),
        *("studies", "sweeps", "application_metrics", *BASE),
    },
    "start": {"cli"},
    "__main__": {"start"},
}
# Two modules of a pair may name each other if one of them does so for types only.
FOR_TYPES_ONLY = {
    *(("report", "studies"), ("plot", "advice"), ("plot", "comparison"), ("plot", "results")),
    ("plot", "fit"),
    ("plot", "orbits"),
    *(("frames", "results"), ("notebook", "results"), ("notebook", "advice")),
    *(("notebook", "prediction"), ("notebook", "sweeps"), ("plot", "prediction")),
}

# Examples that the build copies there are data: users' code.
EXAMPLES = PACKAGE / "examples"
FILES = sorted(path for path in PACKAGE.rglob("*.py") if not path.is_relative_to(EXAMPLES))


def unit_of(path: Path) -> str:
    """Return the module or folder right below the package that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path: Path) -> list[tuple[str, bool]]:
    """Return what a file imports of bentpipe, below the package, and whether for types only."""
    module = ("bentpipe", *path.relative_to(PACKAGE).with_suffix("").parts)
    found: list[tuple[str, bool]] = []

    def visit(node: ast.AST, *, typing: bool) -> None:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*module[: -node.level], *([base] if base else [])])
            # `from bentpipe import studies` names a module, too; below, the first part decides.
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "bentpipe" and len(parts) > 1:
                found.append((parts[1], typing))
        within = typing or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        for child in ast.iter_child_nodes(node):
            visit(child, typing=within)

    visit(ast.parse(path.read_text(encoding="utf-8")), typing=False)
    return found


def test_every_module_has_allowed_imports() -> None:
    units = {unit_of(path) for path in FILES} - {"__init__"}
    assert units == MAY_IMPORT.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_allowed_dependencies(path: Path) -> None:
    unit = unit_of(path)
    if unit == "__init__":
        # The public names, each from its home when it is asked for.
        assert all(typing for name, typing in imports(path) if name != "__version__")
        return
    allowed = MAY_IMPORT[unit] | {unit, "__version__"}
    wrong = {name for name, _ in imports(path) if name not in allowed}
    assert not wrong, f"{unit} may not import {', '.join(sorted(wrong))}"
    for name, typing in imports(path):
        if (unit, name) in FOR_TYPES_ONLY:
            assert typing, f"{unit} may import {name} for types only"


def test_allowed_dependencies_are_acyclic() -> None:
    arrows = {
        unit: {each for each in allowed if each != "_native" and (unit, each) not in FOR_TYPES_ONLY}
        for unit, allowed in MAY_IMPORT.items()
    }
    while arrows:
        lowest = {unit for unit, needs in arrows.items() if not needs & arrows.keys()}
        assert lowest, f"a circle among {', '.join(arrows)}"
        arrows = {unit: needs for unit, needs in arrows.items() if unit not in lowest}


def test_forbidden_imports_are_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    file = tmp_path / "model" / "formula.py"
    file.parent.mkdir()
    file.write_text(
        "from ..cli import output\nfrom bentpipe import results\nimport bentpipe.scenario\n"
        "from . import path\nfrom .path import x\nimport numpy\n",
        encoding="utf-8",
    )
    assert [name for name, _ in imports(file)] == ["cli", "results", "scenario", "model", "model"]


def test_models_need_numpy_only() -> None:
    for path in sorted((PACKAGE / "model").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            name.partition(".")[0]
            for node in ast.walk(tree)
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        third = names & {"matplotlib", "pyarrow", "rich", "scipy", "typer", "xarray", "pandas"}
        assert not third, f"{path.name}: {third}"
