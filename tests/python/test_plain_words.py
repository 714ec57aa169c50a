"""The check of comments' wording finds what it is meant to find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import check_plain_words as plain  # type: ignore[import-not-found]  # noqa: E402


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("a.rs", "/// Bytes in flight.\nfn a() {}\n", []),
        ("a.rs", "// What waits goes first.\n", ["riddles"]),
        ("a.rs", "/// Is it full?\nfn a() {}\n", ["questions"]),
        ("a.rs", "/// The bytes that\nfn a() {}\n", ["broken"]),
        ("a.rs", f"// {'on ' * 50}\n", ["wide", "long"]),
        ("a.rs", "/// Sends it.\n///\n/// ```\n/// What.\n/// ```\nfn a() {}\n", []),
        ("a.c", "/* Who asks is told. */\nint a;\n", ["riddles"]),
        ("a.ts", "/**\n * Who asks is told.\n */\nlet a = 1;\n", ["riddles"]),
        ("a.py", '"""Is it full?"""\n', ["questions"]),
        ("a.py", "# Nor this.\n", ["riddles"]),
        ("a.py", 'TEXT = """What waits"""\n', []),
    ],
)
def test_each_kind_of_finding_is_detected(
    name: str, source: str, expected: list[str], tmp_path: Path
) -> None:
    """One small source per kind of finding, in each language."""
    path = tmp_path / name
    path.write_text(source)
    found = [kind for _, kind, _ in plain.findings(path, plain.Counter())]
    assert sorted(found) == sorted(expected)


def test_folder_above_the_limit_fails() -> None:
    """The exit status says so; this file itself is within the limits."""
    script = TOOLS / "check_plain_words.py"
    command = [sys.executable, str(script), "tests/python/test_plain_words.py"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    count = plain.Counter(blocks=100, riddles=1, sentences=100, long=3)
    assert plain.excess(count) == ["riddles"]
