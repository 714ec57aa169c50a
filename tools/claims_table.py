#!/usr/bin/env python3
"""Write docs/validation/claims.md, and the counts of claims in docs/evidence.md.

Usage: claims_table.py [--check]

The claims' files have the verdicts of the full run: a claim with a cause does not hold, and every
other holds. `bentpipe reproduce` warns where a full run disagrees. `--check` writes nothing; it
fails if a page is out of date.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bentpipe import studies
from bentpipe.studies.study import Claim, Study

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs/validation/claims.md")
EVIDENCE = Path("docs/evidence.md")
# The sentence of the page with the counts.
COUNTED = re.compile(r"\d+ of \d+ of the papers' claims and \d+ of \d+ of our own hold")
HEAD = """# Claims of the studies

`make reproduce` measures every claim again; its report has the measured values, the expectations
and the tolerances. `python tools/claims_table.py` writes this page from the studies' `claims.toml`.
`bentpipe reproduce` warns where a full run disagrees with it.

* **Sources**: `paper`, the paper makes the claim. All others are our own: `bentpipe`, on what the
  papers do not state; `invariant`, follows from the model or from arithmetic; `fitted`, the setting
  was searched so that the claim holds.
* **Causes**: `contradiction`, the paper contradicts itself; `setting`, the claim holds under
  another setting of what the paper leaves open; `statistical`, it depends on the seed;
  `unresolved`, no cause was found.
"""


def page(listed: Sequence[Study[Any]]) -> str:
    """Return the page of the claims of studies."""
    parts = [HEAD, "| study | paper's claims that hold | own claims that hold |\n|---|---:|---:|"]
    parts += [
        f"| [{each.key}](#{each.key}) | {' | '.join(counts(each.claims))} |" for each in listed
    ]
    together = counts(claim for each in listed for claim in each.claims)
    parts.append(f"| **all** | {' | '.join(together)} |")
    for each in listed:
        parts.append(f"\n## {each.key}\n\n{each.title}: {each.reference}\n")
        parts.append("| claim | source | verdict | cause |\n|---|---|---|---|")
        parts += [row(claim) for claim in each.claims]
    return "\n".join(parts) + "\n"


def counts(claims: Iterable[Claim]) -> list[str]:
    """Return how many of the papers' claims hold, and how many of our own."""
    listed = list(claims)
    found = []
    for published in (True, False):
        some = [each for each in listed if each.is_published == published]
        found.append(f"{sum(each.cause is None for each in some)} of {len(some)}")
    return found


def row(claim: Claim) -> str:
    """Return the row of a claim."""
    if claim.cause is None:
        return f"| `{claim.id}` | {claim.source} | holds | |"
    text = " ".join(claim.cause.text.split()).replace("|", "\\|")
    return f"| `{claim.id}` | {claim.source} | **does not hold** | {claim.cause.kind}: {text} |"


def counted(evidence: str, listed: Sequence[Study[Any]]) -> str:
    """Return the text of docs/evidence.md with the present counts."""
    papers, own = counts(claim for each in listed for claim in each.claims)
    sentence = f"{papers} of the papers' claims and {own} of our own hold"
    found, number = COUNTED.subn(sentence, evidence)
    if number != 1:
        sys.exit(f"{EVIDENCE}: expected one sentence such as {sentence!r}, found {number}")
    return found


def main() -> None:
    """Write the pages, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if out of date")
    check = parser.parse_args().check
    listed = [studies.get(name) for name in studies.names()]
    evidence = (ROOT / EVIDENCE).read_text(encoding="utf-8")
    for path, text in ((PAGE, page(listed)), (EVIDENCE, counted(evidence, listed))):
        file = ROOT / path
        if check:
            if not file.is_file() or file.read_text(encoding="utf-8") != text:
                sys.exit(f"{path} is out of date; run tools/claims_table.py")
        else:
            file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
