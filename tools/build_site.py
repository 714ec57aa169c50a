#!/usr/bin/env python3
"""Build the documentation site with mdBook, and check it.

    tools/build_site.py target/site

mdBook is the command `mdbook` beside Python's, else the one on PATH. Warnings, links that lead
nowhere and files that pages load from the net are errors. The folder is emptied first, so it has to
be new, empty, or a site.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from site_links import problems
from site_pages import PageError, assemble


class SiteError(RuntimeError):
    """The site could not be built, or is wrong."""


def mdbook() -> str | None:
    """Return the command of mdBook, if it is installed."""
    beside = Path(sys.executable).parent / "mdbook"
    return str(beside) if beside.is_file() else shutil.which("mdbook")


def build(site: Path) -> None:
    """Build the site in this folder.

    Raises
    ------
    SiteError
        mdBook is missing, warns or fails; a link of the site leads nowhere.
    PageError
        A page is missing in the navigation, or links to no file.
    """
    command = mdbook()
    if command is None:
        raise SiteError("mdbook is not installed: make setup")
    site = site.resolve()
    if site.is_dir() and any(site.iterdir()) and not any(site.glob("searchindex*.js")):
        raise SiteError(f"{site}: the folder is not empty, and has no site")
    with tempfile.TemporaryDirectory() as folder:
        assemble(Path(folder))
        run = subprocess.run(
            [command, "build", "--dest-dir", str(site), folder],
            capture_output=True,
            text=True,
            check=False,
        )
    said = run.stdout + run.stderr
    if run.returncode or "WARN" in said or "ERROR" in said:
        raise SiteError(said.strip())
    found = list(problems(site))
    if found:
        raise SiteError("\n".join(found))


def main() -> int:
    """Build the site in the folder that the command line names."""
    try:
        build(Path(sys.argv[1]))
    except (PageError, SiteError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
