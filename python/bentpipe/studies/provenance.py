"""Origin of a reproduction: program, machine, date, and the command that repeats it."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from bentpipe import _native
from bentpipe.processors import available_cores

_PACKAGE: Final = Path(__file__).resolve().parents[1]
# Libraries on which figures or numbers may depend.
_LIBRARIES: Final = ("numpy", "pyarrow", "matplotlib")
_GIT_S: Final = 10.0


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Origin of a reproduction.

    * `commit`: that of the Python package in a checkout, and of the native module elsewhere.
    * `native_commit`: that of which the native module, the simulator, was built.
    * `workers`: simulations at a time, or the cluster's address.
    * `elapsed_s`: time of the whole reproduction, in seconds.
    """

    command: str
    workers: str
    version: str = _native.__version__
    commit: str = field(default_factory=lambda: checkout_commit() or _native.__commit__)
    native_commit: str = _native.__commit__
    date: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))
    system: str = field(default_factory=platform.platform)
    processor: str = field(default_factory=lambda: processor())
    cores: int = field(default_factory=available_cores)
    python: str = field(default_factory=platform.python_version)
    libraries: Mapping[str, str] = field(default_factory=lambda: _versions())
    elapsed_s: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def checkout_commit(package: Path = _PACKAGE) -> str:
    """Return the commit of the checkout that the package is in; empty for an installed package.

    A commit with uncommitted changes gets the suffix ", with changes".
    """
    root = package.parents[1]
    if not (root / ".git").exists():
        return ""
    commit = _git(root, "rev-parse", "--short=12", "HEAD")
    if not commit:
        return ""
    changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}, with changes" if changes else commit


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=_GIT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's name as Linux reports it, or else its architecture."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
