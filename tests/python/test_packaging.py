"""The Debian package names the processor that its program is compiled for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import build_deb  # type: ignore[import-not-found]  # noqa: E402


def program(folder: Path, machine: int, magic: bytes = b"\x7fELF") -> Path:
    """Write the head of an ELF file: e_type is at byte 16, e_machine at byte 18."""
    path = folder / "program"
    head = magic.ljust(16, b"\0") + (2).to_bytes(2, "little") + machine.to_bytes(2, "little")
    path.write_bytes(head + bytes(44))
    return path


# The numbers of EM_X86_64 and EM_AARCH64 in elf.h.
@pytest.mark.parametrize(("machine", "name"), [(62, "amd64"), (183, "arm64")])
def test_the_processor_is_that_of_the_program(tmp_path: Path, machine: int, name: str) -> None:
    assert build_deb.architecture(program(tmp_path, machine)) == name


# EM_PPC64, and a script instead of a program.
@pytest.mark.parametrize(("machine", "magic"), [(21, b"\x7fELF"), (62, b"#!/b")])
def test_other_programs_are_refused(tmp_path: Path, machine: int, magic: bytes) -> None:
    with pytest.raises(SystemExit, match="not a program for amd64, arm64"):
        build_deb.architecture(program(tmp_path, machine, magic))
