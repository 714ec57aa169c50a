#!/usr/bin/env python3
"""Check that the imports within each Rust crate go one way only.

    tools/check_rust_imports.py [--list] [CRATE ...]

A module is a file. It depends on the files whose items its code names: in `use` declarations and in
paths that begin with `crate`, `self`, `super` or a child module. A name that another module only
re-exports counts for the file that defines it. Test code does not count. Two things are errors:

    cycle   sibling modules (each with the modules below it) that depend on each other; in the
            topmost folders of a crate in BY_TOPIC, files that do
    mutual  a module and a module below it that depend on each other. In the upper module, `mod` and
            re-exports (`pub use`) do not count; in the lower module, the upper module's types that
            it has an `impl` block for (a type's methods may fill several files)

Prints each error with the file and line of its imports, and exits with status 1 if there is one.
`--list` prints the places in EXEMPT, too.
"""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Crates with a folder per topic and, in each, a file per stage (schema, settings, resolve, build,
# summary). A network's settings contain those of all its parts, and what builds a part takes the
# network's settings, so folders depend on each other. Their files must not.
BY_TOPIC = {"scenario"}

# Places that are better as they are, as an error names them. A place without an error must go.
EXEMPT = {
    # A mix is an application that consists of applications: the type contains itself.
    "mutual host::applications: mix",
}

Name = tuple[str, ...]

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*)
    |(?P<string>b?c?"(?:[^"\\]|\\.)*"|b?c?r(?P<hashes>\#*)".*?"(?P=hashes))
    |(?P<char>b?'(?:[^'\\]|\\(?:x..|u\{[^}]*\}|.))')
    |(?P<word>'?(?:r\#)?[A-Za-z_0-9]+)
    |(?P<mark>::|=>|->|.)""",
    re.VERBOSE | re.DOTALL,
)
COMMENT_MARK = re.compile(r"/\*|\*/")
OPENING, CLOSING = {"(", "[", "{"}, {")", "]", "}"}
ITEMS = {"fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"}
PREFIXES = {"unsafe", "extern", "async", "default", "auto"}
PATH_STARTS = {"crate", "self", "super"}


@dataclass(frozen=True)
class Token:
    """A token of a source file and its line."""

    text: str
    line: int


def tokens_of(source: str) -> list[Token]:
    """Return the tokens of a source, without comments; literals have the text `""`."""
    found, position, line = [], 0, 1
    while match := TOKEN.match(source, position):
        end = match.end()
        if match[0] == "/*":
            depth = 1
            while depth and (mark := COMMENT_MARK.search(source, end)):
                depth += 1 if mark[0] == "/*" else -1
                end = mark.end()
        elif match["word"] or match["mark"]:
            found.append(Token(match[0].removeprefix("r#"), line))
        elif match["string"] or match["char"]:
            found.append(Token('""', line))
        line += source.count("\n", position, end)
        position = end
    return found


def closing(tokens: list[Token], at: int) -> int:
    """Return the index after the group that opens at `at`."""
    depth = 0
    while at < len(tokens):
        depth += (tokens[at].text in OPENING) - (tokens[at].text in CLOSING)
        at += 1
        if depth == 0:
            break
    return at


def item_end(tokens: list[Token], at: int) -> int:
    """Return the index after the item, statement, field or arm that begins at `at`."""
    words = {token.text for token in tokens[at : at + 4]}
    separated = not words & (ITEMS | {"impl", "mod", "use", "let"})
    to_semicolon = tokens[at].text in {"use", "let"} or "use" in words or "const" in words
    while at < len(tokens) and tokens[at].text not in CLOSING:
        text = tokens[at].text
        if text in OPENING:
            at = closing(tokens, at)
            if text == "{" and not to_semicolon:
                return at
        else:
            at += 1
            if text == ";" or (text == "," and separated):
                return at
    return at


def without_tests(tokens: list[Token]) -> list[Token]:
    """Return the tokens without attributes and without what `#[cfg(test)]` stands before."""
    kept, at = [], 0
    while at < len(tokens):
        if tokens[at].text != "#" or at + 1 == len(tokens) or tokens[at + 1].text not in {"[", "!"}:
            kept.append(tokens[at])
            at += 1
            continue
        opens = at + 1 if tokens[at + 1].text == "[" else at + 2
        end = closing(tokens, opens)
        words = [token.text for token in tokens[opens:end]]
        at = end
        # A test, or an item for tests.
        if words[1:2] == ["test"] or (
            words[1:2] == ["cfg"] and "test" in words and "not" not in words
        ):
            while tokens[at].text == "#":
                at = closing(tokens, at + 1)
            at = item_end(tokens, at)
    return kept


def extended_type(tokens: list[Token], at: int) -> str:
    """Return the name of the type that the `impl` block before `at` is for."""
    depth, name = 0, ""
    while tokens[at].text not in {"{", "where"}:
        text = tokens[at].text
        depth += (text == "<") - (text == ">")
        if depth == 0 and re.match(r"\w", text):
            name = text
        at += 1
    return name


@dataclass
class Import:
    """A name that a `use` declaration binds."""

    name: str  # "*" for all names of a module, "_" for a trait without a name.
    path: Name
    line: int
    reexport: bool


@dataclass
class Module:
    """A module: a file, or an inline module within one."""

    name: Name
    file: Path
    children: set[str] = field(default_factory=set)
    items: dict[str, str] = field(default_factory=dict)
    imports: list[Import] = field(default_factory=list)
    paths: list[tuple[Name, int]] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    extended: set[str] = field(default_factory=set)

    @cached_property
    def imported(self) -> dict[str, Name]:
        """Return the path of each imported name."""
        return {each.name: each.path for each in self.imports}

    def read(self, tokens: list[Token], crate: "Crate") -> None:
        """Add what the module's tokens declare, import and name."""
        at, depth = 0, 0
        while at < len(tokens):
            text = tokens[at].text
            depth += (text in OPENING) - (text in CLOSING)
            if text == "use" and tokens[at + 1].text != "<":
                at = self.read_use(tokens, at)
            elif text == "pub" and tokens[at + 1].text == "(":
                at = closing(tokens, at + 1)
            elif text == "mod" and tokens[at + 2].text in {";", "{"}:
                at = crate.add_child(self, tokens, at)
            elif re.match(r"\w", text):
                if depth == 0 and text in ITEMS and re.match(r"[\w!]", tokens[at + 1].text):
                    named = at + (2 if text == "macro_rules" else 1)
                    self.items[tokens[named].text] = text
                if depth == 0 and text == "impl":
                    self.extended.add(extended_type(tokens, at + 1))
                at = self.read_path(tokens, at)
            else:
                at += 1

    def read_use(self, tokens: list[Token], at: int) -> int:
        """Add the names of the `use` declaration at `at`; return the index after it."""
        reexport = at > 0 and tokens[at - 1].text in {"pub", ")"}

        def tree(at: int, prefix: Name) -> int:
            path = prefix
            while True:
                token = tokens[at]
                if token.text == "{":
                    at += 1
                    while tokens[at].text != "}":
                        at = tree(at, path)
                        at += tokens[at].text == ","
                    return at + 1
                if token.text != "::":
                    path = (*path, token.text)
                at += 1
                if tokens[at].text != "::" and token.text != "::":
                    break
            name = path[-1]
            if name == "self":
                path = path[:-1]
                name = path[-1] if path else "self"
            if tokens[at].text == "as":
                name = tokens[at + 1].text
                at += 2
            found = path[:-1] if name == "*" else path
            self.imports.append(Import(name, found, token.line, reexport))
            return at

        return tree(at + 1, ()) + 1

    def read_path(self, tokens: list[Token], at: int) -> int:
        """Add the path that begins at `at`; return the index after it."""
        start, parts = at, [tokens[at].text]
        while (
            at + 2 < len(tokens)
            and tokens[at + 1].text == "::"
            and re.match(r"\w", tokens[at + 2].text)
        ):
            at += 2
            parts.append(tokens[at].text)
        self.words.update(parts)
        if len(parts) > 1 and (start == 0 or tokens[start - 1].text not in {"::", "."}):
            self.paths.append((tuple(parts), tokens[start].line))
        return at + 1


@dataclass
class Dependency:
    """Code in one file that names an item of another file."""

    source: Name
    target: Name
    place: str
    text: str
    extends: bool  # The source has an `impl` block for the item.


class Crate:
    """The modules of a crate, from its root file."""

    def __init__(self, root: Path) -> None:
        self.modules: dict[Name, Module] = {}
        self.read((), root)

    def read(self, name: Name, file: Path) -> None:
        """Add a file and those that it declares as modules."""
        module = self.modules[name] = Module(name, file)
        module.read(without_tests(tokens_of(file.read_text(encoding="utf-8"))), self)

    def add_child(self, module: Module, tokens: list[Token], at: int) -> int:
        """Add the module declared at `at`; return the index after its declaration."""
        child = tokens[at + 1].text
        module.children.add(child)
        name = (*module.name, child)
        if tokens[at + 2].text == "{":
            end = closing(tokens, at + 2)
            inline = self.modules[name] = Module(name, module.file)
            inline.read(tokens[at + 3 : end - 1], self)
            return end
        folder = module.file.parent
        if module.file.stem not in {"lib", "main", "mod"}:
            folder /= module.file.stem
        file = folder / f"{child}.rs"
        self.read(name, file if file.exists() else folder / child / "mod.rs")
        return at + 3

    def resolve(self, name: Name, path: Name, seen: frozenset[tuple[Name, Name]]) -> Name | None:
        """Return the module that defines what `path` means in module `name`, if in this crate."""
        if (name, path) in seen:
            return None
        seen |= {(name, path)}
        for index, part in enumerate(path):
            module = self.modules[name]
            rest = path[index + 1 :]
            if part == "crate":
                name = ()
            elif part == "super":
                name = name[:-1]
            elif part in module.children:
                name = (*name, part)
            elif part in module.items:
                return name
            elif part in module.imported:
                return self.resolve(name, (*module.imported[part], *rest), seen)
            elif part != "self":
                for each in module.imports:
                    if each.name != "*":
                        continue
                    other = self.resolve(name, each.path, seen)
                    if other is not None and (found := self.resolve(other, path[index:], seen)):
                        return found
                # Not declared by an item that is visible here: a macro's, or another crate's.
                return name if index else None
        return name

    def file_module(self, name: Name) -> Name:
        """Return the module whose file holds module `name`."""
        while name and self.modules[name[:-1]].file == self.modules[name].file:
            name = name[:-1]
        return name

    def dependencies(self) -> Iterator[Dependency]:
        """Yield the dependencies between files."""
        for module in self.modules.values():
            named = [
                (each.path, each.line)
                for each in module.imports
                if not each.reexport or each.name in module.words
            ]
            source = self.file_module(module.name)
            for path, line in [*named, *module.paths]:
                if path[0] not in PATH_STARTS and path[0] not in module.children:
                    continue
                target = self.resolve(module.name, path, frozenset())
                if target is not None and (target := self.file_module(target)) != source:
                    place = f"{module.file.relative_to(ROOT)}:{line}"
                    extends = not module.extended.isdisjoint(path)
                    yield Dependency(source, target, place, "::".join(path), extends)


@dataclass
class Finding:
    """An error: its name, and the imports that make it."""

    name: str
    dependencies: list[Dependency]


def common(one: Name, other: Name) -> int:
    """Return how many leading parts two names share."""
    return next(
        (index for index, pair in enumerate(zip(one, other, strict=False)) if len(set(pair)) > 1),
        min(len(one), len(other)),
    )


def strongly_connected(arrows: dict[str, set[str]]) -> Iterator[set[str]]:
    """Yield the groups of names that reach each other, of two names or more."""
    reached: dict[str, set[str]] = {}
    for start in arrows:
        pending, found = [start], set[str]()
        while pending:
            for each in arrows.get(pending.pop(), set()) - found:
                found.add(each)
                pending.append(each)
        reached[start] = found
    done: set[str] = set()
    for start in sorted(arrows):
        if start not in done and start in reached[start]:
            group = {each for each in reached[start] if start in reached.get(each, set())}
            done |= group
            yield group


def findings(crate: str, dependencies: list[Dependency]) -> Iterator[Finding]:
    """Yield the cycles between siblings and the mutual dependencies between levels."""
    siblings: dict[Name, list[tuple[str, str, Dependency]]] = defaultdict(list)
    levels: dict[tuple[Name, str], list[list[Dependency]]] = defaultdict(lambda: [[], []])
    for each in dependencies:
        shared = common(each.source, each.target)
        parent = each.source[:shared]
        if len(each.source) == shared:
            levels[parent, each.target[shared]][0].append(each)
        elif len(each.target) == shared:
            if not each.extends:
                levels[parent, each.source[shared]][1].append(each)
        elif crate in BY_TOPIC and not parent:
            siblings[parent].append(("::".join(each.source), "::".join(each.target), each))
        else:
            siblings[parent].append((each.source[shared], each.target[shared], each))
    for parent, pairs in sorted(siblings.items()):
        arrows: dict[str, set[str]] = defaultdict(set)
        for source, target, _ in pairs:
            arrows[source].add(target)
        for group in strongly_connected(arrows):
            within = [each for source, target, each in pairs if {source, target} <= group]
            yield Finding(f"cycle {'::'.join((crate, *parent))}: {' '.join(sorted(group))}", within)
    for (parent, child), (down, up) in sorted(levels.items()):
        if down and up:
            yield Finding(f"mutual {'::'.join((crate, *parent))}: {child}", [*down, *up])


def check(crates: list[str]) -> Iterator[Finding]:
    """Yield the findings of crates, by their folders' names."""
    for crate in crates:
        source = ROOT / "crates" / crate / "src"
        roots = [source / name for name in ("lib.rs", "main.rs")] + sorted(source.glob("bin/*.rs"))
        for root in roots:
            if root.exists():
                yield from findings(crate, list(Crate(root).dependencies()))


def main() -> None:
    """Print the errors."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print exempt places, too")
    parser.add_argument("crates", nargs="*", metavar="CRATE", help="all, if none is named")
    arguments = parser.parse_args()
    every = sorted(each.parent.name for each in (ROOT / "crates").glob("*/Cargo.toml"))
    crates = arguments.crates or every
    found = {finding.name: finding for finding in check(crates)}
    for name, finding in sorted(found.items()):
        if name in EXEMPT and not arguments.list:
            continue
        print(name + (" (exempt)" if name in EXEMPT else ""))
        for each in finding.dependencies:
            print(f"  {each.place} {each.text} ({'::'.join(('crate', *each.target))})")
    stale = {name for name in EXEMPT - found.keys() if re.split("[ :]+", name)[1] in crates}
    for name in sorted(stale):
        print(f"{name}: in EXEMPT, but not found")
    failed = stale | (found.keys() - EXEMPT)
    print(f"{len(found)} places in {len(crates)} crates, {len(found.keys() & EXEMPT)} exempt")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
