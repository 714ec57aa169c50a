#!/usr/bin/env python3
"""Write docs/validation/rfc.md: the requirements of the RFCs, and where they are implemented.

Usage: rfc_table.py [--check]

Reads docs/validation/rfc-requirements.toml and the comments of the Rust sources in crates/. Each
file named as an implementation must exist, cite the RFC and the section (or a section that contains
it) as "RFC 9293 section 3.8.6.1", and contain the symbol, if one is given. Exits with status 1 and
the place of each error otherwise. `--check` writes nothing; it fails if the page is out of date.
"""

import argparse
import os
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path("docs/validation/rfc-requirements.toml")
PAGE = Path("docs/validation/rfc.md")
LEVELS = {"MUST", "MUST NOT", "SHOULD", "SHOULD NOT"}
KEYS = {
    "rfc",
    "section",
    "level",
    "id",
    "requirement",
    "implemented",
    "symbol",
    "partly",
    "not_implemented",
}
MOST_WORDS = 20

CITATION = re.compile(r"\bRFC (\d+)(?: (?:section|appendix) (\d+(?:\.\d+)*|[A-Z]\b(?:\.\d+)*))?")
COMMENT = re.compile(r"^\s*//[/!]?\s?(.*)$")
LATER_COMMENT = re.compile(r"\s//\s(.*)$")


class DataError(Exception):
    """Errors in the data or the sources, one per line."""


@dataclass(frozen=True)
class Requirement:
    """One requirement of an RFC, and the line of the data file where it begins."""

    line: int
    rfc: int
    section: str
    level: str
    requirement: str
    id: str = ""
    implemented: tuple[str, ...] = ()
    symbol: str = ""
    partly: str = ""
    not_implemented: str = ""

    @property
    def state(self) -> str:
        """Whether it is implemented."""
        if self.not_implemented:
            return "not"
        return "partly" if self.partly else "implemented"


def comments(source: str) -> Iterator[str]:
    """Yield the text of each comment; consecutive comment lines are one."""
    block: list[str] = []
    for line in source.splitlines():
        whole = COMMENT.match(line)
        if whole:
            block.append(whole[1])
            continue
        if block:
            yield " ".join(block)
            block = []
        if later := LATER_COMMENT.search(line):
            yield later[1]
    if block:
        yield " ".join(block)


def citations(source: str) -> set[tuple[int, str]]:
    """Return the RFCs and sections that a source's comments cite; the section may be empty."""
    return {
        (int(rfc), section)
        for comment in comments(source)
        for rfc, section in CITATION.findall(comment)
    }


def is_test(path: Path) -> bool:
    """Whether a source contains only tests."""
    return "tests" in path.parts or path.name == "tests.rs"


def read_sources(root: Path) -> dict[str, set[tuple[int, str]]]:
    """Return the citations of each Rust source, by path from the root."""
    return {
        path.relative_to(root).as_posix(): citations(path.read_text())
        for path in sorted((root / "crates").rglob("*.rs"))
    }


def parents(section: str) -> list[str]:
    """Return a section's number and those of the sections that contain it."""
    parts = section.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def read_data(path: Path) -> tuple[str, dict[str, str], list[Requirement]]:
    """Return the note, the titles of the RFCs by number, and the requirements."""
    text = path.read_text()
    data = tomllib.loads(text)
    lines = [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() == "[[requirement]]"
    ]
    requirements, errors = [], []
    for line, entry in zip(lines, data["requirement"], strict=True):
        wrong = wrong_entry(entry, data["titles"])
        errors += [f"{DATA}:{line}: {message}" for message in wrong]
        if not wrong:
            files = tuple(entry.pop("implemented", ()))
            requirements.append(Requirement(line=line, implemented=files, **entry))
    if errors:
        raise DataError("\n".join(errors))
    return data["note"], data["titles"], requirements


def wrong_entry(entry: dict[str, object], titles: dict[str, str]) -> list[str]:
    """Return what is wrong with an entry of the data file by itself."""
    wrong = [f"unknown key {key}" for key in sorted(entry.keys() - KEYS)]
    missing = sorted({"rfc", "section", "level", "requirement"} - entry.keys())
    wrong += [f"no {key}" for key in missing]
    if not missing:
        if str(entry["rfc"]) not in titles:
            wrong.append(f"RFC {entry['rfc']} has no title in [titles]")
        if entry["level"] not in LEVELS:
            wrong.append(f"level {entry['level']} is none of {', '.join(sorted(LEVELS))}")
        if len(str(entry["requirement"]).split()) > MOST_WORDS:
            wrong.append(f"the requirement has more than {MOST_WORDS} words")
    if bool(entry.get("implemented")) == bool(entry.get("not_implemented")):
        wrong.append("needs either implemented or not_implemented")
    if entry.get("not_implemented") and (entry.get("symbol") or entry.get("partly")):
        wrong.append("not_implemented excludes symbol and partly")
    return wrong


def check(
    root: Path,
    requirements: Iterable[Requirement],
    sources: dict[str, set[tuple[int, str]]],
) -> None:
    """Check that the named files implement what the data says; raise the errors found."""
    errors = []
    for requirement in requirements:
        place = f"{DATA}:{requirement.line}: RFC {requirement.rfc} section {requirement.section}"
        allowed = {(requirement.rfc, section) for section in parents(requirement.section)}
        for name in requirement.implemented:
            if name not in sources:
                errors.append(f"{place}: {name} does not exist (renamed?)")
            elif not sources[name] & allowed:
                errors.append(f"{place}: {name} has no comment that cites this section")
        existing = [name for name in requirement.implemented if name in sources]
        if requirement.symbol and existing:
            word = re.compile(rf"\b{re.escape(requirement.symbol)}\b")
            if not any(word.search((root / name).read_text()) for name in existing):
                names = ", ".join(existing)
                errors.append(f"{place}: {requirement.symbol} is not in {names} (renamed?)")
    if errors:
        raise DataError("\n".join(errors))


def link(name: str) -> str:
    """Return a link from the page to a source."""
    target = os.path.relpath(name, PAGE.parent)
    return f"[`{name.removeprefix('crates/').replace('/src/', '/')}`]({target})"


def where(requirement: Requirement) -> str:
    """Return the last column of a requirement's row."""
    if requirement.not_implemented:
        return f"Not implemented. {requirement.not_implemented}"
    files = ", ".join(link(name) for name in requirement.implemented)
    symbol = f": `{requirement.symbol}`" if requirement.symbol else ""
    partly = f". Partly: {requirement.partly}" if requirement.partly else ""
    return files + symbol + partly


def section_order(section: str) -> list[int]:
    """Return a section's number in a form that sorts."""
    return [int(part) for part in section.split(".")]


def count_of(requirements: list[Requirement]) -> str:
    """Return the sentence that says how many requirements are implemented."""
    count = Counter(requirement.state for requirement in requirements)
    return (
        f"{len(requirements)} requirements: {count['implemented']} implemented, "
        f"{count['partly']} partly, {count['not']} not."
    )


def table(requirements: list[Requirement]) -> Iterator[str]:
    """Yield the lines of one RFC's count and table."""
    yield count_of(requirements)
    yield ""
    yield "| section | level | requirement | where, or why not |"
    yield "|---|---|---|---|"
    for requirement in sorted(requirements, key=lambda r: section_order(r.section)):
        number = f" ({requirement.id})" if requirement.id else ""
        text = requirement.requirement.replace("|", "\\|")
        yield (
            f"| {requirement.section} | {requirement.level}{number} | {text} | "
            f"{where(requirement)} |"
        )


def page(
    note: str,
    titles: dict[str, str],
    requirements: list[Requirement],
    sources: dict[str, set[tuple[int, str]]],
) -> str:
    """Return the page."""
    lines = [
        "<!-- Generated by tools/rfc_table.py from rfc-requirements.toml. Do not edit. -->",
        "",
        "# Requirements of the RFCs, and where they are implemented",
        "",
        note.strip(),
    ]
    lines += ["", f"In all {count_of(requirements)}"]
    for rfc, title in titles.items():
        own = [requirement for requirement in requirements if requirement.rfc == int(rfc)]
        lines += ["", f"## RFC {rfc}: {title}", "", *table(own)]
    lines += ["", "## Other RFCs that the code cites", "", "| RFC | files |", "|---|---|"]
    files: defaultdict[int, list[str]] = defaultdict(list)
    for name, cited in sources.items():
        if not is_test(Path(name)):
            for other in {number for number, _ in cited} - {int(rfc) for rfc in titles}:
                files[other].append(name)
    lines += [f"| {other} | {', '.join(map(link, files[other]))} |" for other in sorted(files)]
    return "\n".join(lines) + "\n"


def generate(root: Path) -> str:
    """Return the page for the sources and the data below a folder."""
    note, titles, requirements = read_data(root / DATA)
    sources = read_sources(root)
    check(root, requirements, sources)
    return page(note, titles, requirements, sources)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Write docs/validation/rfc.md.")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    arguments = parser.parse_args()
    try:
        text = generate(ROOT)
    except DataError as error:
        print(error, file=sys.stderr)
        return 1
    path = ROOT / PAGE
    if not arguments.check:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        print(f"{PAGE} is out of date: run tools/rfc_table.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
