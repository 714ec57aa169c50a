"""Licence, citation and version say the same wherever they stand."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from bentpipe import __version__, _native

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
    assert set(_native.window_rules()) == set(lists["congestion-controls"])


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
