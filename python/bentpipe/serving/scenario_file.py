"""The scenario file that the page edits: read, saved, and watched for changes by others."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from bentpipe.errors import RequestError, reason

LONGEST: Final = 1 << 20


class ScenarioFile:
    """A file on disk; without a path, the page keeps its text to itself."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    @property
    def folder(self) -> Path:
        """Where trace files are looked for."""
        return Path.cwd() if self.path is None else self.path.resolve().parent

    def read(self) -> str | None:
        """Return the text, or None if there is no file or it was deleted.

        Raises
        ------
        RequestError
            The file can't be read as text.
        """
        if self.path is None:
            return None
        try:
            with self.path.open("rb") as file:
                content = file.read(LONGEST + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RequestError(f"{self.path}: {reason(error)}") from None
        if len(content) > LONGEST:
            raise RequestError(f"{self.path}: longer than 1 MiB: not a scenario file")
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise RequestError(f"{self.path}: not UTF-8 text") from None

    def save(self, text: str) -> None:
        """Replace the file at once: a reader sees the old text or the new one.

        Raises
        ------
        RequestError
            There is no file to save to, or it can't be written.
        """
        if self.path is None:
            raise RequestError("no file: start `bentpipe serve FILE`")
        target = self.path.resolve()
        try:
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
            with tempfile.NamedTemporaryFile(
                "wb", dir=target.parent, prefix=".", suffix=".part", delete=False
            ) as part:
                part.write(text.encode())
            os.chmod(part.name, mode)  # noqa: PTH101 - of a name, not a path
            os.replace(part.name, target)  # noqa: PTH105
        except OSError as error:
            raise RequestError(f"{self.path}: {reason(error)}") from None
