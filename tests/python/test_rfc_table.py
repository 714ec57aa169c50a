"""The table of RFC requirements is up to date, and its check finds stale entries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import rfc_table  # type: ignore[import-not-found]  # noqa: E402

SOURCE = """//! Opening.

/// RFC 9293
/// section 3.8: sends a SYN.
fn open() {} // RFC 7323 section 2
"""


def entry(**other: str) -> str:
    """Return a data file with one requirement; `other` replaces or adds keys, in TOML."""
    keys = {
        "rfc": "9293",
        "section": '"3.8.6"',
        "level": '"MUST"',
        "requirement": '"Sends a SYN."',
        "implemented": '["crates/tcp/src/open.rs"]',
    } | other
    lines = [f"{key} = {value}" for key, value in keys.items() if value]
    head = ['note = "A note."', "[titles]", '9293 = "TCP"', '7323 = "Extensions"']
    return "\n".join([*head, "[[requirement]]", *lines]) + "\n"


def write(root: Path, data: str) -> None:
    """Write a data file and one source below a folder."""
    for name, text in {str(rfc_table.DATA): data, "crates/tcp/src/open.rs": SOURCE}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_page_is_up_to_date() -> None:
    """Every named file exists and cites the section, and the page matches the data."""
    command = [sys.executable, str(TOOLS / "rfc_table.py"), "--check"]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_wrapped_comments_are_joined() -> None:
    """A citation may begin on one line and end on the next."""
    assert rfc_table.citations(SOURCE) == {(9293, "3.8"), (7323, "2")}
    assert rfc_table.citations('let text = "RFC 9293 section 3.8";\n') == set()


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({}, ""),
        ({"symbol": '"open"'}, ""),
        ({"symbol": '"close"'}, "close is not in crates/tcp/src/open.rs"),
        ({"section": '"3.9"'}, "has no comment that cites this section"),
        ({"rfc": "7323", "section": '"2.3"'}, ""),
        ({"rfc": "5681"}, "RFC 5681 has no title"),
        ({"implemented": '["crates/tcp/src/gone.rs"]'}, "gone.rs does not exist"),
        ({"implemented": ""}, "needs either implemented or not_implemented"),
        ({"not_implemented": '"Not modelled."'}, "needs either"),
        ({"level": '"MAY"'}, "level MAY is none of"),
        ({"section": ""}, "no section"),
        ({"note": '"Unknown."'}, "unknown key note"),
        ({"requirement": f'"{"very " * 20}long."'}, "more than 20 words"),
    ],
)
def test_stale_and_wrong_entries_are_refused(
    other: dict[str, str], expected: str, tmp_path: Path
) -> None:
    """Each error names the line of the data file where the requirement begins."""
    write(tmp_path, entry(**other))
    if not expected:
        assert "1 requirements" in rfc_table.generate(tmp_path)
        return
    with pytest.raises(rfc_table.DataError, match=expected) as error:
        rfc_table.generate(tmp_path)
    assert str(error.value).startswith("docs/validation/rfc-requirements.toml:5: ")


def test_page_counts_implemented_requirements(tmp_path: Path) -> None:
    """A requirement is implemented, partly implemented, or not."""
    write(tmp_path, entry(partly='"Only SYNs."'))
    assert "1 requirements: 0 implemented, 1 partly, 0 not." in rfc_table.generate(tmp_path)
    write(tmp_path, entry(implemented="", not_implemented='"Not modelled."'))
    text = rfc_table.generate(tmp_path)
    assert "1 requirements: 0 implemented, 0 partly, 1 not." in text
    assert "| 3.8.6 | MUST | Sends a SYN. | Not implemented. Not modelled. |" in text
