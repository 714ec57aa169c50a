#!/usr/bin/env python3
"""Check the licences, versions and sources of all Rust dependencies against deny.toml.

    tools/check_dependencies.py

Reads `cargo metadata`, so it needs no network and nothing installed. deny.toml is in cargo-deny's
format; of it, this checks:

    licenses.allow           every SPDX expression can be met with these identifiers
    bans.deny                none of these crates is a dependency
    bans.multiple-versions   no crate is there in two versions, but for those in bans.skip
    bans.wildcards           no requirement of the workspace is `*`
    sources                  packages are of the workspace, or of the one default registry

Prints each finding on a line, and exits with status 1 if there is any.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TOKEN = re.compile(r"\(|\)|[A-Za-z0-9.+-]+")


def is_met(expression: str, allowed: set[str]) -> bool:
    """Whether allowed licences meet an SPDX expression; `/` is an older way to write OR."""
    tokens = TOKEN.findall(expression.replace("/", " OR "))[::-1]

    def term() -> bool:
        token = tokens.pop()
        if token == "(":
            met = either()
            if tokens.pop() != ")":
                raise ValueError(expression)
            return met
        if tokens and tokens[-1] == "WITH":
            tokens.pop()
            token = f"{token} WITH {tokens.pop()}"
        return token in allowed

    def both() -> bool:
        met = term()
        while tokens and tokens[-1] == "AND":
            tokens.pop()
            met = term() and met
        return met

    def either() -> bool:
        met = both()
        while tokens and tokens[-1] == "OR":
            tokens.pop()
            met = both() or met
        return met

    try:
        met = either()
    except IndexError:
        return False
    return met and not tokens


def findings(metadata: dict[str, Any], rules: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each package that breaks a rule."""
    packages = metadata["packages"]
    members = set(metadata["workspace_members"])
    allowed = set(rules["licenses"]["allow"])
    banned = {each["name"] for each in rules["bans"].get("deny", ())}
    skipped = {each["name"] for each in rules["bans"].get("skip", ())}
    versions: defaultdict[str, list[str]] = defaultdict(list)
    sources: defaultdict[str, list[str]] = defaultdict(list)
    for package in packages:
        name = f"{package['name']} {package['version']}"
        versions[package["name"]].append(package["version"])
        if not is_met(package["license"] or "", allowed):
            yield f"{name}: licence {package['license']!r} is not allowed"
        if package["name"] in banned:
            yield f"{name}: banned"
        source = package["source"]
        if source is None:
            if package["id"] not in members:
                yield f"{name}: a path outside of the workspace"
        elif source.startswith("registry+"):
            sources[source].append(name)
        else:
            yield f"{name}: source {source}"
        if package["id"] in members:
            for dependency in package["dependencies"]:
                if dependency["req"] == "*" and not dependency.get("path"):
                    yield f"{name}: any version of {dependency['name']}"
    for name, several in versions.items():
        if len(several) > 1 and name not in skipped:
            yield f"{name}: versions {', '.join(sorted(several))}"
    yield from (f"{name}: skipped without need" for name in skipped if len(versions[name]) < 2)
    usual = max(sources, key=lambda source: len(sources[source]), default="")
    for source, names in sources.items():
        if source != usual:
            yield from (f"{name}: registry {source}" for name in names)


def main() -> int:
    """Run the command."""
    command = ["cargo", "metadata", "--format-version", "1", "--all-features", "--locked"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    rules = tomllib.loads((ROOT / "deny.toml").read_text("utf-8"))
    found = sorted(findings(json.loads(done.stdout), rules))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
