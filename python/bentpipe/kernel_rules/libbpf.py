"""The few functions of libbpf that register a window rule, by ctypes.

libbpf is on nearly every distribution, because iproute2 uses it. Versions 1.1 and later work.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from bentpipe.errors import WorkError

_LIBRARY: Final = "libbpf.so.1"
# Constants of linux/bpf.h.
_MAP_TYPE_STRUCT_OPS: Final = 26
_MAP_FLAG_LINK: Final = 1 << 13
_ATTACH_STRUCT_OPS: Final = 44
# ENOTSUPP, the kernel's own error number.
_NOT_SUPPORTED: Final = 524
_SETTINGS: Final = b".rodata.settings"
# Longest line of libbpf's that is kept, and the number of lines.
_LINE: Final = 1000
_LINES: Final = 400

_Print = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


def is_available() -> bool:
    """Whether the library can be loaded."""
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True


class Library:
    """The library, with the types of the functions used, and the lines that it prints."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(_LIBRARY, use_errno=True)
        except OSError as error:
            raise WorkError(f"{_LIBRARY} is missing: on Debian, apt install libbpf1") from error
        self._lines: list[str] = []
        self._print = _Print(self._note)
        pointer, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
        for name, result, *arguments in (
            ("bpf_object__open_mem", pointer, text, ctypes.c_size_t, pointer),
            ("bpf_object__load", number, pointer),
            ("bpf_object__close", None, pointer),
            ("bpf_object__next_map", pointer, pointer, pointer),
            ("bpf_object__find_map_by_name", pointer, pointer, text),
            ("bpf_map__type", number, pointer),
            ("bpf_map__name", text, pointer),
            ("bpf_map__fd", number, pointer),
            ("bpf_map__set_map_flags", number, pointer, ctypes.c_uint32),
            ("bpf_map__set_initial_value", number, pointer, text, ctypes.c_size_t),
            ("bpf_map__attach_struct_ops", pointer, pointer),
            ("bpf_link__fd", number, pointer),
            ("bpf_link__disconnect", None, pointer),
            ("bpf_link__destroy", number, pointer),
            ("bpf_link_create", number, number, number, number, pointer),
            ("bpf_obj_pin", number, number, text),
            ("bpf_obj_get", number, text),
            ("bpf_obj_get_info_by_fd", number, number, pointer, pointer),
            ("bpf_map_get_fd_by_id", number, ctypes.c_uint32),
            ("bpf_map_lookup_elem", number, number, pointer, pointer),
            ("libbpf_set_print", pointer, _Print),
        ):
            function = getattr(self._library, name)
            function.restype = result
            function.argtypes = arguments
        self._library.libbpf_set_print(self._print)

    def _note(self, level: int, form: bytes, arguments: int) -> int:
        """Keep what the library prints; warnings and information, not debugging output."""
        if level <= 1 and len(self._lines) < _LINES:
            buffer = ctypes.create_string_buffer(_LINE)
            ctypes.CDLL(None).vsnprintf(
                buffer, ctypes.c_size_t(_LINE), form, ctypes.c_void_p(arguments)
            )
            self._lines += buffer.value.decode("utf-8", "replace").splitlines()
        return 0

    def reason(self, number: int) -> str:
        """Return why the last call failed, in one line: the verifier's word if there is one."""
        # The last line of the verifier before its statistics names the refused instruction.
        log = [line for line in self._lines if line and not line.startswith(("libbpf:", "--"))]
        said = [
            line for line in log if not re.match(r"processed \d+ insns|\d+: |;|verification", line)
        ]
        if said and number in (errno.EACCES, errno.EINVAL, errno.EPERM, errno.E2BIG):
            return f"the kernel refuses the program: {said[-1]}"
        if number == _NOT_SUPPORTED:
            return "a program in the object file is no callback of window rules in this kernel"
        return os.strerror(number).lower() if number else "unknown reason"

    @contextmanager
    def opened(self, program: bytes) -> Iterator[RuleObject]:
        """Open an object file until the end of the block."""
        self._lines.clear()
        opened = self._library.bpf_object__open_mem(program, len(program), None)
        if not opened:
            raise WorkError(f"not a BPF program: {self.reason(ctypes.get_errno())}")
        try:
            yield RuleObject(self, self._library, opened)
        finally:
            self._library.bpf_object__close(opened)

    def pin(self, descriptor: int, path: str) -> None:
        """Give a link a path below /sys/fs/bpf."""
        if self._library.bpf_obj_pin(descriptor, path.encode()) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)

    def users_of(self, path: str) -> int:
        """Return about how many connections use the rule of a pinned link."""
        descriptor = self._library.bpf_obj_get(path.encode())
        if descriptor < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        try:
            return self._users(descriptor)
        finally:
            os.close(descriptor)

    def _users(self, descriptor: int) -> int:
        # struct bpf_link_info: type, id, program, and for this type the map at 16.
        link = self._info(descriptor, 64)
        (map_id,) = struct.unpack_from("=I", link, 16)
        opened = self._library.bpf_map_get_fd_by_id(map_id)
        if opened < 0:
            return 0
        try:
            # struct bpf_map_info: type, id, key and value size, ...
            (value_bytes,) = struct.unpack_from("=I", self._info(opened, 128), 12)
            value = ctypes.create_string_buffer(value_bytes)
            key = ctypes.c_uint32(0)
            self._library.bpf_map_lookup_elem(opened, ctypes.byref(key), value)
        finally:
            os.close(opened)
        # The value begins with the number of references; the link has one.
        (references,) = struct.unpack_from("=I", value.raw, 0)
        return max(0, int(references) - 1)

    def _info(self, descriptor: int, length: int) -> bytes:
        buffer = ctypes.create_string_buffer(length)
        size = ctypes.c_uint32(length)
        if self._library.bpf_obj_get_info_by_fd(descriptor, buffer, ctypes.byref(size)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return buffer.raw


class RuleObject:
    """An opened object file with one window rule."""

    def __init__(self, library: Library, calls: Any, opened: int) -> None:
        self._library = library
        self._calls = calls
        self._opened = opened
        self._map = self._rule_map()
        calls.bpf_map__set_map_flags(self._map, _MAP_FLAG_LINK)

    @property
    def name(self) -> str:
        """The name of the rule's variable in the source, which is its name in the kernel."""
        name: bytes = self._calls.bpf_map__name(self._map)
        return name.decode()

    def _rule_map(self) -> int:
        found = []
        each = self._calls.bpf_object__next_map(self._opened, None)
        while each:
            if self._calls.bpf_map__type(each) == _MAP_TYPE_STRUCT_OPS:
                found.append(each)
            each = self._calls.bpf_object__next_map(self._opened, each)
        if len(found) != 1:
            raise WorkError(f"expected one window rule in the object file, got {len(found)}")
        return int(found[0])

    def set_settings(self, packed: bytes) -> None:
        """Write the settings, before the program is loaded."""
        settings = self._calls.bpf_object__find_map_by_name(self._opened, _SETTINGS)
        # A rule that reads no setting has none in its object file.
        if settings:
            error = self._calls.bpf_map__set_initial_value(settings, packed, len(packed))
            if error != 0:
                raise WorkError(f"settings: {self._library.reason(-error)}")

    def load(self) -> None:
        """Load the program: the kernel's verifier checks it."""
        error = self._calls.bpf_object__load(self._opened)
        if error != 0:
            raise WorkError(self._library.reason(-error))

    def attach(self) -> int:
        """Register the rule; return the descriptor of a link, with whose end the rule ends.

        Raises
        ------
        FileExistsError
            The kernel has a rule of this name.
        """
        calls = self._calls
        link = calls.bpf_map__attach_struct_ops(self._map)
        if not link:
            raise _attach_error(ctypes.get_errno())
        descriptor = calls.bpf_link__fd(link)
        if descriptor != calls.bpf_map__fd(self._map):
            # From libbpf 1.2 on, this is the descriptor of a link.
            descriptor = os.dup(descriptor)
        else:
            descriptor = calls.bpf_link_create(descriptor, 0, _ATTACH_STRUCT_OPS, None)
            number = ctypes.get_errno()
            calls.bpf_link__disconnect(link)
            if descriptor < 0:
                calls.bpf_link__destroy(link)
                raise _attach_error(number)
        calls.bpf_link__destroy(link)
        return int(descriptor)


def _attach_error(number: int) -> Exception:
    if number == errno.EEXIST:
        return FileExistsError(number, os.strerror(number))
    return WorkError(f"the kernel does not register the rule: {os.strerror(number).lower()}")
