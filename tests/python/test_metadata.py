"""Licence, citation and version say the same wherever they stand."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from bentpipe import __version__, _native, kinds

ROOT = Path(__file__).parents[2]


def test_version_and_licence_agree_in_all_files() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    readme = (ROOT / "README.md").read_text("utf-8")
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    licence = cargo["license"]
    assert licence == project["license"] == "MIT OR Apache-2.0"
    assert f"SPDX-License-Identifier: {licence}" in readme
    for name in licence.split(" OR "):
        assert f"  - {name}\n" in citation
        text = (ROOT / f"LICENSE-{name.split('-')[0].upper()}").read_text("utf-8")
        assert name.split("-")[0] in text
    assert cargo["version"] == __version__
    dependencies = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"][
        "dependencies"
    ]
    for name, dependency in dependencies.items():
        if name.startswith("bentpipe-") and "version" in dependency:
            assert dependency["version"] == __version__, name
    assert f"\nversion: {__version__}\n" in citation
    assert re.search(rf"^## {re.escape(__version__)}\b", changelog, re.MULTILINE)
    assert f"version {__version__}" in readme
    assert "CITATION.cff" in readme


def test_changelog_has_dated_versions_with_filled_sections() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    _, *releases = re.split(r"^## ", changelog, flags=re.MULTILINE)
    assert releases
    allowed = {"Added", "Changed", "Changed results", "Fixed", "Removed", "Known limits"}
    numbers = []
    for release in releases:
        heading = release.partition("\n")[0]
        found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+) \((unreleased|\d{4}-\d\d-\d\d)\)", heading)
        assert found, heading
        numbers.append(tuple(map(int, found.groups()[:3])))
        # Only the newest may have no date yet.
        assert found[4] != "unreleased" or release is releases[0]
        _, *sections = re.split(r"^### ", release, flags=re.MULTILINE)
        titles = [section.partition("\n")[0] for section in sections]
        assert titles
        assert set(titles) <= allowed
        assert len(set(titles)) == len(titles), "a section is there twice"
        for title, section in zip(titles, sections, strict=True):
            lines = [line for line in section.splitlines()[1:] if line]
            assert lines, f"{title} is empty"
            assert lines[0].startswith("- "), title
            stray = [line for line in lines if not re.match(r"- \S|  \S", line)]
            assert stray == [], title
    assert numbers == sorted(set(numbers), reverse=True)


def test_congestion_controls_and_queues_are_documented() -> None:
    rules = "".join(path.read_text("utf-8") for path in (ROOT / "docs/congestion").glob("*.md"))
    queues = (ROOT / "docs/queues.md").read_text("utf-8")
    lists = _native.lists()
    missing = [
        name
        for kind, text in (("congestion-controls", rules), ("queues", queues))
        for name in lists[kind]
        if not re.search(rf"[`\"]{name}[`\"]", text)
    ]
    assert not missing
    assert set(kinds.window_rules()) == set(lists["congestion-controls"])
    assert set(kinds.queues()) == set(lists["queues"])
    assert set(kinds.applications()) == set(lists["applications"])
    assert set(kinds.gateways()) == set(lists["gateways"])


def test_fuzz_lock_file_has_the_crates_dependencies() -> None:
    # `make test-slow` checks with --locked, which refuses where it has not; that is late.
    locked = {
        package["name"]: {name.partition(" ")[0] for name in package.get("dependencies", ())}
        for package in tomllib.loads((ROOT / "fuzz/Cargo.lock").read_text("utf-8"))["package"]
    }
    different = {}
    for file in (ROOT / "fuzz/Cargo.toml", *ROOT.glob("crates/*/Cargo.toml")):
        manifest = tomllib.loads(file.read_text("utf-8"))
        name = manifest["package"]["name"]
        if name in locked:
            tables = [manifest, *manifest.get("target", {}).values()]
            named = {
                each.get("package", key) if isinstance(each, dict) else key
                for table in tables
                for kind in ("dependencies", "build-dependencies")
                for key, each in table.get(kind, {}).items()
            }
            if named != locked[name]:
                different[name] = named ^ locked[name]
    assert not different


PUBLISHED = ("types", "wire", "link", "tcp")


def test_published_crates_are_described_and_depend_on_published_ones() -> None:
    found = set()
    for path in ROOT.glob("crates/*/Cargo.toml"):
        manifest = tomllib.loads(path.read_text("utf-8"))
        package, folder = manifest["package"], path.parent
        if package["publish"] != {"workspace": True}:
            assert package["publish"] is True
            found.add(folder.name)
            assert 1 <= len(package["keywords"]) <= 5
            assert all(re.fullmatch(r"[a-z][a-z0-9-]{0,19}", each) for each in package["keywords"])
            assert package["categories"]
            assert (
                (folder / package["readme"]).read_text("utf-8").startswith(f"# {package['name']}")
            )
            own = [name for name in manifest["dependencies"] if name.startswith("bentpipe-")]
            assert {name.removeprefix("bentpipe-") for name in own} <= set(PUBLISHED)
            for licence in ("MIT", "APACHE"):
                text = (folder / f"LICENSE-{licence}").read_text("utf-8")
                assert text == (ROOT / f"LICENSE-{licence}").read_text("utf-8")
    assert found == set(PUBLISHED)
    assert f"PUBLISHED := {' '.join(PUBLISHED)}\n" in (ROOT / "Makefile").read_text("utf-8")


def test_workflows_and_hooks_call_only_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    commands = []
    for workflow in (ROOT / ".github/workflows").glob("*.yml"):
        commands += re.findall(r"\brun: (.*)", workflow.read_text("utf-8"))
    assert commands
    hooks = re.findall(r"\bentry: (.*)", (ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    assert hooks
    ci = re.findall(r"^make .*", (ROOT / ".ci/run").read_text("utf-8"), re.MULTILINE)
    assert {"make lint", "make test"} <= set(ci)
    for command in (*commands, *hooks, *ci):
        program, *names = command.split()
        assert program == "make"
        assert set(names) <= targets, command


def test_every_integration_test_file_is_a_module_of_its_crates_one_binary() -> None:
    """With `autotests = false`, cargo ignores a file that tests/main.rs does not name."""
    missing = []
    for folder in ROOT.glob("crates/*/tests"):
        main = folder / "main.rs"
        if main.exists():
            named = set(re.findall(r"^mod (\w+);", main.read_text("utf-8"), re.MULTILINE))
            here = {path.stem for path in folder.glob("*.rs")} - {"main"}
            here |= {path.parent.name for path in folder.glob("*/mod.rs")}
            missing += [f"{folder.relative_to(ROOT)}/{name}" for name in here ^ named]
        else:
            assert len(list(folder.glob("*.rs"))) == 1, folder
    assert missing == []


TOOLS = ("check-prerequisites", "check-msrv")


@pytest.mark.parametrize(
    ("used", "installed", "ci", "statuses"),
    [
        ("{older}.0", "", "", (1, 0)),
        ("{oldest}.0", "", "true", (0, 0)),
        ("{newer}.3", "", "", (0, 0)),
        ("{newer}.3", "", "true", (0, 1)),
        ("{newer}.3", "{oldest}.0-x86_64", "true", (0, 0)),
    ],
)
def test_oldest_supported_rust_is_checked(
    tmp_path: Path, used: str, installed: str, ci: str, statuses: tuple[int, int]
) -> None:
    """With a `cargo` and a `rustup` that only print versions, and record what is compiled."""
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]
    minor = int(cargo["rust-version"].removeprefix("1."))
    words = {"oldest": f"1.{minor}", "older": f"1.{minor - 1}", "newer": f"1.{minor + 1}"}
    used, installed = used.format(**words), installed.format(**words)
    log = tmp_path / "log"
    for name, line in {
        "cargo": f'case "$1" in --version) echo "cargo {used} (x)";; *) echo "$@" > {log};; esac',
        "rustup": f'echo "stable-x86_64 (active)"; echo "{installed}"',
    }.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "CI": ci}
    for tool, status in zip(TOOLS, statuses, strict=True):
        done = subprocess.run(
            ["sh", ROOT / "tools" / tool], env=environment, capture_output=True, check=False
        )
        assert done.returncode == status, (tool, done.stderr)
    assert log.exists() == bool(installed)
    if installed:
        assert log.read_text().startswith(f"+{installed} check --workspace")
