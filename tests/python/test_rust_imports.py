"""The check of imports within Rust crates finds cycles, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import check_rust_imports as imports  # type: ignore[import-not-found]  # noqa: E402

ONE_WAY = {"lib.rs": "mod a;\nmod b;\n", "a.rs": "pub struct A;\n", "b.rs": "use crate::a::A;\n"}


def _write_crate(files: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a crate "x", and make the check read it."""
    monkeypatch.setattr(imports, "ROOT", folder)
    for name, source in files.items():
        path = folder / "crates" / "x" / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (ONE_WAY, []),
        (
            {**ONE_WAY, "a.rs": "pub struct A;\nfn f() { super::b::g(); }\n"},
            ["cycle a b: a.rs:2 b.rs:1"],
        ),
        # Within a tree of imports, the line is that of the name.
        (
            {**ONE_WAY, "a.rs": "use crate::{\n    b::{self, B},\n};\n"},
            ["cycle a b: a.rs:2 b.rs:1"],
        ),
        # Modules below siblings count for these.
        (
            {
                **ONE_WAY,
                "a.rs": "pub mod c;\npub struct A;\n",
                "a/c.rs": "use crate::b::B;\n",
            },
            ["cycle a b: a/c.rs:1 b.rs:1"],
        ),
        # A re-exported name counts for the file that defines it.
        (
            {
                "lib.rs": "mod a;\nmod b;\npub use a::*;\npub use b::B;\n",
                "a.rs": "use crate::B;\npub struct A;\n",
                "b.rs": "use crate::A;\npub struct B(A);\n",
            },
            ["cycle a b: a.rs:1 b.rs:1"],
        ),
        # Tests, comments and literals do not count, nor do visibilities.
        (
            {
                **ONE_WAY,
                "a.rs": "pub(in crate::b) struct A;\n// use crate::b::B;\n/* /* */ crate::b::B */\n"
                'const T: &str = "crate::b::B";\nconst Q: char = \'"\';\n'
                "#[cfg(test)]\nuse crate::b::B;\n#[cfg(test)]\nmod tests { use crate::b::B; }\n"
                "#[cfg(test)]\n#[allow(unused)]\nfn f() -> [u8; 2] { crate::b::g(); }\n",
            },
            [],
        ),
        # A file for tests is not read.
        ({**ONE_WAY, "a.rs": "#[cfg(test)]\nmod tests;\n"}, []),
        # Levels.
        (
            {"lib.rs": "mod a;\npub struct B(a::A);\n", "a.rs": "use super::B;\n"},
            ["mutual a: lib.rs:2 a.rs:1"],
        ),
        ({"lib.rs": "mod a;\npub use a::A;\npub struct B;\n", "a.rs": "use super::B;\n"}, []),
        (
            {"lib.rs": "mod a;\npub use a::A;\npub struct B(A);\n", "a.rs": "use super::B;\n"},
            ["mutual a: lib.rs:2 a.rs:1"],
        ),
        # A type's methods may fill several files; its neighbours may not be imported.
        (
            {
                "lib.rs": "mod a;\npub struct B(a::A);\n",
                "a.rs": "use super::B;\nimpl<T: Into<u8>> X<T> for B<T> where T: X {}\n",
            },
            [],
        ),
        (
            {
                "lib.rs": "mod a;\npub struct B(a::A);\npub trait C {}\n",
                "a.rs": "use super::{B, C};\nimpl C for B {}\n",
            },
            ["mutual a: lib.rs:2 a.rs:1"],
        ),
        # Modules within a file.
        (
            {"lib.rs": "mod a { use super::b::B; }\nmod b;\n", "b.rs": "use crate::a::A;\n"},
            ["mutual b: lib.rs:1 b.rs:1"],
        ),
    ],
)
def test_each_kind_of_cycle_is_found(
    files: dict[str, str], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small crates, each with the places of its cycles."""
    _write_crate(files, tmp_path, monkeypatch)
    found = []
    for each in imports.check(["x"]):
        kind, _, names = each.name.replace(": ", " ").split(" ", 2)
        places = dict.fromkeys(one.place.removeprefix("crates/x/src/") for one in each.dependencies)
        found.append(f"{kind} {names}: {' '.join(places)}")
    assert found == expected


@pytest.mark.parametrize(
    ("below", "expected"),
    [
        # One folder's later stage depends on the other's earlier stage, both ways.
        ({"b/schema.rs": "pub struct B;\n", "b/build.rs": "use crate::a::schema::A;\n"}, []),
        (
            {"b/schema.rs": "use crate::a::build::f;\npub struct B;\n", "b/build.rs": "\n"},
            ["cycle x: a::build b::schema"],
        ),
    ],
)
def test_files_of_a_crate_by_topic_have_no_cycles(
    below: dict[str, str], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders may depend on each other, files may not."""
    monkeypatch.setattr(imports, "BY_TOPIC", {"x"})
    files = {
        "lib.rs": "mod a;\nmod b;\n",
        "a/mod.rs": "pub mod build;\npub mod schema;\n",
        "a/schema.rs": "pub struct A;\n",
        "a/build.rs": "use crate::b::schema::B;\npub fn f() {}\n",
        "b/mod.rs": "pub mod build;\npub mod schema;\n",
        **below,
    }
    _write_crate(files, tmp_path, monkeypatch)
    assert [each.name for each in imports.check(["x"])] == expected


def test_exempt_place_without_a_cycle_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of exempt places has no others than those found."""
    script = TOOLS / "check_rust_imports.py"
    assert subprocess.run([sys.executable, str(script)], check=False).returncode == 0
    monkeypatch.setattr(sys, "argv", [str(script), "types"])
    monkeypatch.setattr(imports, "EXEMPT", imports.EXEMPT | {"cycle types: time units"})
    with pytest.raises(SystemExit) as ended:
        imports.main()
    assert ended.value.code == 1
