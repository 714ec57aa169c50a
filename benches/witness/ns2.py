"""ns-2, for the witnesses that have scripts of their own: whether it is here, and how it is run."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path


def available() -> bool:
    """Whether ns-2 is installed."""
    return shutil.which("ns") is not None


def version() -> str:
    """Return the version of the installed ns-2, such as "2.35"."""
    finished = subprocess.run(
        ["ns"], input="puts [ns-version]\n", capture_output=True, text=True, check=True
    )
    return finished.stdout.strip()


def run(script: Path, options: Mapping[str, object]) -> str:
    """Run a script with pairs of a key and a value, and return what it prints.

    Raises
    ------
    RuntimeError
        ns-2 failed: what it said of it.
    """
    # Fixed-point: ns-2 does not read every exponent form.
    arguments = [
        f"{part:.15f}" if isinstance(part, float) else str(part)
        for option in options.items()
        for part in option
    ]
    finished = subprocess.run(
        ["ns", str(script), *arguments], capture_output=True, text=True, check=False
    )
    if finished.returncode != 0:
        raise RuntimeError(f"ns-2 failed: {finished.stderr.strip()}")
    return finished.stdout
