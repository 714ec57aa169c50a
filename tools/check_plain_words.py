#!/usr/bin/env python3
"""Check that comments and docstrings read plainly, folder by folder.

    tools/check_plain_words.py [--list] [PATH ...]

Reads the tracked sources of the repository, tests and tools included: Rust, C and TypeScript
comments, Python comments and docstrings. Prints a table with one row per folder and exits with
status 1 if a folder exceeds a limit. `--list` prints the places instead. The columns:

    riddles    sentences whose subject is a relative clause ("What waits ...", "Whoever asks ...")
    questions  documentation comments that begin with a question
    broken     documentation comments without a closing full stop, colon, bracket or code
    long       sentences of more than 30 words
    wide       comment lines of more than 100 columns
"""

import argparse
import inspect
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
C_LIKE = {".rs", ".c", ".h", ".ts", ".tsx"}
WIDEST = 100
LONGEST = 30

# Shares are of blocks (riddles) and of sentences (long); the others are counts.
LIMITS = {"riddles": 0.005, "questions": 0, "broken": 0, "long": 0.03, "wide": 0}

RIDDLE = re.compile(
    r"(What|Who|Whoever|Whatever|Whose|Whom|Nor|Of (what|whom|these|those)|"
    r"So (few|many|much|long)|Than)\b"
)
CLOSED = re.compile(r"[.:?!)`|>\]\"']$")
SENTENCE_END = re.compile(r"(?<=[.:;?!])\s+(?=[A-Z(\"'*\[])")


@dataclass(frozen=True)
class Block:
    """A run of comment lines, or a docstring."""

    line: int
    documentation: bool
    text: str


def comment_blocks(source: str) -> Iterator[Block]:
    """Yield the comments of a Rust, C or TypeScript source; code within fences is left out."""
    lines: list[str] = []
    start, marker, fenced, inside_block = 0, "", False, False

    def finished() -> Iterator[Block]:
        text = " ".join(part for part in lines if part)
        if text:
            yield Block(start, marker in ("///", "//!", "/**"), text)
        lines.clear()

    for number, line in enumerate(source.split("\n"), 1):
        if inside_block:
            body, found = line.strip().removeprefix("*").removeprefix("/"), marker
            inside_block = "*/" not in line
            body = body.split("*/")[0]
        elif match := re.match(r"\s*(///|//!|//|/\*\*?)(?!/) ?(.*)$", line):
            found, body = match[1], match[2]
            if found.startswith("/*"):
                inside_block = "*/" not in body
                body = body.split("*/")[0]
        else:
            yield from finished()
            continue
        if lines and found != marker:
            yield from finished()
        if not lines:
            start, marker, fenced = number, found, fenced and found == marker
        body = body.strip()
        if body.startswith("```"):
            fenced = not fenced
        elif not fenced and not body.startswith(("|", "#")):
            lines.append(paragraph_part(body, lines))
    yield from finished()


def paragraph_part(body: str, before: list[str]) -> str:
    """Return a comment line; list items and blank lines end the sentence before them."""
    if body and not body.startswith(("* ", "- ")):
        return body
    item = body.lstrip("*- ")
    return f". {item}" if before and not re.search(r"[.:;?!]$", before[-1]) else item


def python_blocks(source: str) -> Iterator[Block]:
    """Yield the comments and docstrings of a Python source."""
    before: tokenize.TokenInfo | None = None
    opening = (tokenize.INDENT, tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Block(token.start[0], False, token.string.lstrip("# "))
        elif token.type == tokenize.STRING and (before is None or before.type in opening):
            text = token.string.lstrip("rR")
            if text.startswith('"""'):
                yield Block(token.start[0], True, docstring_prose(text.strip('"'), token.start[1]))
        if token.type != tokenize.NL or before is None:
            before = token


def docstring_prose(text: str, column: int) -> str:
    """Return a docstring on one line, without headings and literal blocks (commands, tables).

    The end of a paragraph is the end of a sentence. Literal blocks are indented and follow a blank
    line. In a section (a heading underlined with `----`), indented lines are descriptions of the
    names before them; the names are left out.
    """
    paragraphs: list[str] = []
    sections = False
    # The last line states the indentation of the first.
    text = inspect.cleandoc(f"{text}\n{' ' * column}.").removesuffix("\n.")
    for part in re.split(r"\n\s*\n", text.strip()):
        lines = part.split("\n")
        if len(lines) > 1 and set(lines[1]) == {"-"}:
            sections, lines = True, lines[2:]
        if sections:
            described = re.sub(r"^\S.*$", "", "\n".join(lines), flags=re.MULTILINE)
            paragraphs += filter(str.strip, re.split(r"\n\n+", described))
        elif not lines[0].startswith("  "):
            paragraphs.append(part)
    ended = [" ".join(each.split()) for each in paragraphs]
    return " ".join(each if CLOSED.search(each) else f"{each}." for each in ended[:-1]) + (
        f" {ended[-1]}" if len(ended) > 1 else ended[0] if ended else ""
    )


def sentences(text: str) -> list[str]:
    """Split a comment's text into sentences; code spans count as one word."""
    text = re.sub(r"`[^`]*`", "x", text)
    return [part.strip() for part in SENTENCE_END.split(text) if re.search(r"[A-Za-z]{2}", part)]


def findings(path: Path, count: Counter[str]) -> Iterator[tuple[int, str, str]]:
    """Yield (line, kind, sentence) of each finding in a file, and add to `count`."""
    source = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(source.split("\n"), 1):
        if len(line) > WIDEST and re.match(r"\s*(//|#|\* )", line):
            yield number, "wide", line.strip()
    for block in comment_blocks(source) if path.suffix in C_LIKE else python_blocks(source):
        parts = sentences(block.text)
        if not parts:
            continue
        count["blocks"] += 1
        count["sentences"] += len(parts)
        if riddles := [part for part in parts if RIDDLE.match(part)]:
            yield block.line, "riddles", riddles[0]
        if block.documentation and parts[0].endswith("?"):
            yield block.line, "questions", parts[0]
        if block.documentation and not CLOSED.search(block.text.strip()):
            yield block.line, "broken", parts[-1]
        for part in parts:
            if len(part.split()) > LONGEST:
                yield block.line, "long", part


def sources(paths: list[str]) -> list[Path]:
    """Return the tracked source files below the paths, or of the whole repository."""
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--", *(paths or ["."])],
        check=True,
        capture_output=True,
        text=True,
    )
    found = [ROOT / name for name in listing.stdout.splitlines()]
    return [path for path in found if path.is_file() and is_source(path)]


def is_source(path: Path) -> bool:
    """Whether a file is Rust, C, TypeScript or Python, scripts without a suffix included."""
    if path.suffix:
        return path.suffix in C_LIKE | {".py", ".pyi"}
    with path.open("rb") as file:
        return re.match(rb"#!.*python", file.readline(200)) is not None


def folder_of(path: Path) -> str:
    """Return the row that a file belongs to: its crate, or its top folder."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2]) if parts[0] == "crates" else parts[0]


def excess(count: Counter[str]) -> list[str]:
    """Return the names of the limits that a folder's counts exceed."""
    measured = {
        "riddles": count["riddles"] / max(count["blocks"], 1),
        "long": count["long"] / max(count["sentences"], 1),
    }
    return [kind for kind, limit in LIMITS.items() if measured.get(kind, count[kind]) > limit]


def main() -> int:
    """Run the check; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--list", action="store_true", help="print each place")
    parser.add_argument("paths", nargs="*", help="files or folders (default: all)")
    arguments = parser.parse_args()
    rows: dict[str, Counter[str]] = {}
    for path in sources(arguments.paths):
        count = rows.setdefault(folder_of(path), Counter())
        for line, kind, sentence in findings(path, count):
            count[kind] += 1
            if arguments.list:
                print(f"{path.relative_to(ROOT)}:{line}: {kind}: {sentence[:160]}")
    failed = {folder: kinds for folder, count in rows.items() if (kinds := excess(count))}
    if arguments.list:
        return 1 if failed else 0
    print(f"{'folder':20} blocks riddles questions broken   long  wide")
    for folder, count in sorted(rows.items()):
        riddles = count["riddles"] / max(count["blocks"], 1)
        long = count["long"] / max(count["sentences"], 1)
        print(
            f"{folder:20} {count['blocks']:6} {riddles:7.1%} {count['questions']:9} "
            f"{count['broken']:6} {long:6.1%} {count['wide']:5}"
        )
    for folder, kinds in sorted(failed.items()):
        print(f"{folder}: too many {', '.join(kinds)} (see --list {folder})", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
