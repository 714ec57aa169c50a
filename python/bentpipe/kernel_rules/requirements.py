"""Requirements of window rules in the kernel: privileges, BTF, libbpf, programs."""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bentpipe.kernel_rules import libbpf
from bentpipe.kernel_rules.rules import RULES, compiler

_BTF: Final = Path("/sys/kernel/btf/vmlinux")
BPF_FILES: Final = Path("/sys/fs/bpf")
# The first kernel with links of struct_ops, which end with the process that has them.
_LEAST_LINUX: Final = (6, 4)
# Bits of capabilities in /proc/self/status.
_CAPABILITIES: Final = {"CAP_NET_ADMIN": 12, "CAP_PERFMON": 38, "CAP_BPF": 39}
_SYS_ADMIN: Final = 21


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """Something that loading needs: whether it is there, and what is there or how to get it.

    `for_boot`: only rules that stay loaded after the command need it.
    """

    name: str
    met: bool
    detail: str
    for_boot: bool = False


def requirements() -> list[Requirement]:
    """Return all requirements."""
    if sys.platform != "linux":
        return [
            Requirement(name="Linux", met=False, detail="window rules in the kernel need Linux")
        ]
    return [_linux(), _btf(), _privileges(), _library(), _programs(), _bpf_files()]


def obstacle(*, pinned: bool = False) -> str | None:
    """Return the first requirement that is not met, in one line.

    `pinned`: the rule is to stay loaded.
    """
    for each in requirements():
        if not each.met and (pinned or not each.for_boot):
            return each.detail
    return None


def _linux() -> Requirement:
    release = platform.release()
    numbers = re.match(r"(\d+)\.(\d+)", release)
    version = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
    met = version >= _LEAST_LINUX
    detail = release if met else f"Linux {release} is too old: expected 6.4 or later"
    return Requirement(name="Linux 6.4", met=met, detail=detail)


def _btf() -> Requirement:
    met = _BTF.is_file()
    detail = str(_BTF) if met else f"this kernel has no BTF ({_BTF}): CONFIG_DEBUG_INFO_BTF is off"
    return Requirement(name="BTF", met=met, detail=detail)


def _privileges() -> Requirement:
    status = Path("/proc/self/status").read_text("ascii", "replace")
    held = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    bits = int(held[1], 16) if held else 0
    missing = [name for name, bit in _CAPABILITIES.items() if not bits >> bit & 1]
    if bits >> _SYS_ADMIN & 1:
        missing = [name for name in missing if name == "CAP_NET_ADMIN"]
    if not missing and _in_user_namespace():
        missing = ["root outside of user namespaces"]
    detail = "CAP_BPF, CAP_NET_ADMIN"
    if missing:
        detail = f"missing privileges ({', '.join(missing)}): run as root"
    return Requirement(name="privileges", met=not missing, detail=detail)


def _in_user_namespace() -> bool:
    # The first namespace maps all 2^32 - 1 users to themselves.
    lines = Path("/proc/self/uid_map").read_text("ascii").split()
    return lines != ["0", "0", "4294967295"]


def _library() -> Requirement:
    met = libbpf.is_available()
    detail = "libbpf.so.1" if met else "libbpf.so.1 is missing: on Debian, apt install libbpf1"
    return Requirement(name="libbpf", met=met, detail=detail)


def _programs() -> Requirement:
    clang = compiler()
    if clang is not None:
        return Requirement(name="programs", met=True, detail=f"compiled by {clang}")
    met = all(rule.is_compiled() for rule in RULES.values())
    detail = "compiled with this package"
    if not met:
        detail = "this package has no compiled rules, and clang is missing: apt install clang"
    return Requirement(name="programs", met=met, detail=detail)


def _bpf_files() -> Requirement:
    met = BPF_FILES.is_dir() and os.path.ismount(BPF_FILES)
    detail = str(BPF_FILES)
    if not met:
        detail = f"{BPF_FILES} is not mounted: mount -t bpf bpf {BPF_FILES}"
    return Requirement(name="BPF file system", met=met, detail=detail, for_boot=True)
