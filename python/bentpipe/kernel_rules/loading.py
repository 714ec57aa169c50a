"""Registration of window rules in the kernel, and their removal."""

from __future__ import annotations

import functools
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bentpipe.errors import RequestError, WorkError, reason
from bentpipe.kernel_rules.libbpf import Library
from bentpipe.kernel_rules.requirements import BPF_FILES, obstacle
from bentpipe.kernel_rules.rules import NAME_BYTES, KernelRule, RuleSettings, renamed

# Links of rules that stay loaded have their paths here.
FOLDER: Final = BPF_FILES / "bentpipe"
_AVAILABLE: Final = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@dataclass(frozen=True, kw_only=True)
class Registration:
    """A rule that is registered by this package: its name in the kernel, and its users."""

    name: str
    users: int


@functools.cache
def _library() -> Library:
    return Library()


def available() -> list[str]:
    """Return the names of all rules in the kernel."""
    try:
        return _AVAILABLE.read_text("ascii").split()
    except OSError:
        return []


@contextmanager
def loaded(rule: KernelRule, settings: RuleSettings, *, name: str | None = None) -> Iterator[str]:
    """Register a rule until the end of the block or of the process; yield its name.

    Without `name`, the rule has a name that no other one has.

    Raises
    ------
    WorkError
        It cannot be loaded here; the message names what is missing.
    """
    # Fifteen characters, of which nobody else's name consists.
    name = name or f"bp_{secrets.token_hex(6)}"
    link = _register(rule, settings, name)
    try:
        yield name
    finally:
        os.close(link)


def check(rule: KernelRule, settings: RuleSettings) -> None:
    """Have the kernel verify a rule, without registering it.

    Raises
    ------
    WorkError
        It does not compile, or the kernel refuses it.
    """
    if (missing := obstacle()) is not None:
        raise WorkError(missing)
    with _library().opened(rule.program()) as opened:
        opened.set_settings(settings.packed())
        opened.load()


def _register(rule: KernelRule, settings: RuleSettings, name: str) -> int:
    if (missing := obstacle()) is not None:
        raise WorkError(missing)
    if len(name) >= NAME_BYTES or not name.replace("_", "a").replace(".", "a").isalnum():
        raise RequestError(
            f'{name}: a rule\'s name has at most 15 letters, digits, "_" and "." in the kernel'
        )
    if rule.needs_capacity and not settings.channel_capacity_bps:
        raise RequestError(f"{rule.name}: --capacity is missing, such as --capacity 20Mbit/s")
    program = renamed(rule.program(), rule.kernel_name, name)
    with _library().opened(program) as opened:
        opened.set_settings(settings.packed())
        try:
            opened.load()
            return opened.attach()
        except FileExistsError:
            raise WorkError(f"{name}: {_who_has(name)}") from None
        except WorkError as error:
            raise WorkError(f"{rule.name}: {error}") from None


def _who_has(name: str) -> str:
    if (FOLDER / name).exists():
        return f"loaded already; bentpipe kernel unload {name} removes it"
    return "the kernel has a rule of this name that bentpipe has not loaded"


def pin(rule: KernelRule, settings: RuleSettings) -> None:
    """Register a rule that stays until `unpin` or a restart of the machine.

    Raises
    ------
    WorkError
        It cannot be loaded here; the message names what is missing.
    """
    if (missing := obstacle(pinned=True)) is not None:
        raise WorkError(missing)
    link = _register(rule, settings, rule.kernel_name)
    try:
        FOLDER.mkdir(exist_ok=True)
        _library().pin(link, str(FOLDER / rule.kernel_name))
    except OSError as error:
        raise WorkError(f"{FOLDER / rule.kernel_name}: {reason(error)}") from error
    finally:
        # Without a path, the rule ends here.
        os.close(link)


def unpin(name: str) -> Registration:
    """Remove a rule; connections that use it keep it until they end.

    Raises
    ------
    RequestError
        This package has loaded no such rule.
    """
    path = FOLDER / name
    for each in pinned():
        if each.name == name:
            path.unlink()
            _remove_folder()
            return each
    if name in available():
        raise RequestError(f"{name}: not loaded by bentpipe kernel load")
    raise RequestError(f"{name}: not loaded")


def _remove_folder() -> None:
    if not any(FOLDER.iterdir()):
        FOLDER.rmdir()


def pinned() -> list[Registration]:
    """Return the rules that stay loaded.

    Raises
    ------
    WorkError
        They cannot be read: privileges are missing.
    """
    try:
        paths = sorted(FOLDER.iterdir()) if FOLDER.is_dir() else []
        return [
            Registration(name=path.name, users=_library().users_of(str(path))) for path in paths
        ]
    except OSError as error:
        raise WorkError(f"{FOLDER}: {reason(error)}") from error
