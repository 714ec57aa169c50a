"""The rules that exist as BPF programs, their settings, and their compiled form."""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import RequestError, WorkError

_PACKAGE = Path(__file__).resolve().parents[1]
# The sources: in a checkout at its root, in a wheel in the package.
_SOURCES: Final = (_PACKAGE.parents[1] / "kernel", _PACKAGE / "kernel")
# Compiled programs of a wheel that was built where clang was.
_COMPILED: Final = _PACKAGE / "kernel"
# Extension of a rule's source.
_SOURCE: Final = ".bpf.c"

# Bytes of a rule's name in the kernel: TCP_CA_NAME_MAX, with the zero at its end.
NAME_BYTES: Final = 16


@dataclass(frozen=True, kw_only=True)
class RuleSettings:
    """Settings of a rule; None stands for the rule's default.

    `channel_capacity_bps` counts payload. `initial_threshold` is the slow-start threshold of a new
    connection in segments.
    """

    reference_rtt_s: float | None = None
    channel_capacity_bps: float | None = None
    time_constant_s: float | None = None
    initial_threshold: int | None = None

    def packed(self) -> bytes:
        """Return `struct settings` of kernel/window_rule.h."""
        values = (
            (self.reference_rtt_s or 0) * 1e6,
            (self.channel_capacity_bps or 0) / 8,
            (self.time_constant_s or 0) * 1e6,
            self.initial_threshold or 0,
        )
        return struct.pack("=4Q", *(round(value) for value in values))

    @classmethod
    def of_host(cls, rule: KernelRule, tcp: Mapping[str, Any]) -> RuleSettings:
        """Return the settings of a host of a resolved scenario."""
        threshold = tcp["initial_slow_start_threshold_bytes"]
        segments = None if threshold is None else max(2, threshold // tcp["mss_bytes"])
        return cls(
            reference_rtt_s=tcp["hybla"]["reference_rtt_s"],
            channel_capacity_bps=tcp["channel_capacity_bps"] if rule.needs_capacity else None,
            time_constant_s=tcp["westwood"]["time_constant_s"],
            initial_threshold=segments,
        )


@dataclass(frozen=True, kw_only=True)
class KernelRule:
    """A rule as a BPF program.

    `name` is its name in scenario files. `kernel_name` is the one in the kernel, which has no
    dashes. `needs_capacity`: the rule must know the capacity of the channel.
    """

    name: str
    kernel_name: str
    source: Path | None
    needs_capacity: bool = False

    def _ready(self) -> Path:
        return _COMPILED / f"{self.kernel_name}.bpf.o"

    def is_compiled(self) -> bool:
        """Whether the package has the object file."""
        # A rule of the user's may have the name of one of these.
        return RULES.get(self.name) == self and self._ready().is_file()

    def program(self) -> bytes:
        """Return the object file.

        Raises
        ------
        WorkError
            There is none, and it cannot be compiled here.
        """
        # A checkout's source may have changed since the last build.
        in_checkout = self.source is not None and self.source.parent == _SOURCES[0]
        if self.is_compiled() and not (in_checkout and compiler()):
            return self._ready().read_bytes()
        if self.source is None:
            raise WorkError(f"{self.name}: this installation has no source of its BPF program")
        return compiled(self.source)


def _source_of(kernel_name: str) -> Path | None:
    paths = (folder / f"{kernel_name}{_SOURCE}" for folder in _SOURCES)
    return next((path for path in paths if path.is_file()), None)


def _built_in(name: str, *, needs_capacity: bool = False) -> KernelRule:
    kernel_name = name.replace("-", "_")
    return KernelRule(
        name=name,
        kernel_name=kernel_name,
        source=_source_of(kernel_name),
        needs_capacity=needs_capacity,
    )


# By the name in scenario files.
RULES: Final = {
    rule.name: rule
    for rule in (
        _built_in("hybla"),
        _built_in("enhanced-hybla", needs_capacity=True),
        _built_in("westwood"),
        _built_in("westwood-2001"),
    )
}


def find_rule(text: str) -> KernelRule:
    """Return a rule by its name, or one of the user's by the path of its C source.

    Raises
    ------
    RequestError
        There is no such rule.
    """
    if (rule := RULES.get(text.replace("_", "-"))) is not None:
        return rule
    path = Path(text)
    if text.endswith(_SOURCE):
        if not path.is_file():
            raise RequestError(f"{text}: no such file")
        name = path.name.removesuffix(_SOURCE)
        return KernelRule(name=name, kernel_name=name, source=path)
    known = ", ".join(RULES)
    raise RequestError(f"no rule for the kernel is {text!r}; expected {known} or a file *{_SOURCE}")


def compiler() -> str | None:
    """Return the path of clang, or None."""
    return shutil.which("clang")


def headers() -> Path:
    """Return the folder of window_rule.h.

    Raises
    ------
    WorkError
        This installation has none.
    """
    for folder in _SOURCES:
        if (folder / "window_rule.h").is_file():
            return folder
    raise WorkError("this installation has no sources of BPF programs")


def compiled(source: Path) -> bytes:
    """Compile a rule for BPF, and return the object file.

    Raises
    ------
    WorkError
        clang is missing, or refuses the source.
    """
    clang = compiler()
    if clang is None:
        raise WorkError("clang is missing: on Debian, apt install clang")
    with tempfile.TemporaryDirectory(prefix="bentpipe-") as folder:
        target = Path(folder) / "rule.o"
        # The debug information includes BTF, which the kernel reads.
        options = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror"]
        command = [clang, *options, "-I", str(headers()), "-c", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "error:" in line]
            first = (lines or done.stderr.splitlines() or ["clang failed"])[0]
            raise WorkError(f"{source.name} does not compile: {first}")
        return target.read_bytes()


def renamed(program: bytes, name: str, new_name: str) -> bytes:
    """Return an object file whose rule has another name.

    Raises
    ------
    WorkError
        The object file does not contain the name once.
    """
    field = name.encode().ljust(NAME_BYTES, b"\0")
    if program.count(field) != 1:
        raise WorkError(f"{name}: the object file does not contain this name once")
    return program.replace(field, new_name.encode().ljust(NAME_BYTES, b"\0"))
