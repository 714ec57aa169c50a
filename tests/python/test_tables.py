"""No number is ever cut: not in a narrow terminal, not in a pipe, not of the hundredth flow."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.cli.run_tables import quantile
from bentpipe.cli.tables import Table
from bentpipe.groups import groups

from .networks import download, link

COMMAND = [sys.executable, "-m", "bentpipe"]

HEAD = "\n".join(
    [
        """
name = "crowd"
duration = "20 s"
hosts.server = {}
hosts.client = { count = %d }
gateways.hub = { kind = "router" }
""",
        link("satellite", "server", "hub", rate="10 Mbit/s", delay="250 ms"),
        link("access", "hub", "client", rate="5 Mbit/s", delay="2 ms"),
        download("20 kB"),
    ]
)


def in_terminal(*arguments: str, columns: int) -> str:
    """Return the output of a command in a terminal of that width."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=other, stderr=subprocess.DEVNULL, env=environment
    )
    os.close(other)
    said = b""
    # Reading fails when the last writer has closed its end.
    try:
        while piece := os.read(main, 65536):
            said += piece
    except OSError:
        pass
    os.close(main)
    assert process.wait() == 0
    return said.decode().replace("\r\n", "\n")


cells = st.text(alphabet="abc 0123456789.,%–", min_size=1, max_size=30).map(str.strip).filter(bool)


@given(
    st.integers(1, 8).flatmap(
        lambda columns: st.lists(
            st.lists(cells, min_size=columns, max_size=columns), min_size=1, max_size=6
        )
    ),
    st.one_of(st.none(), st.integers(1, 200)),
)
def test_table_cells_are_complete_at_any_width(rows: list[list[str]], width: int | None) -> None:
    table = Table(headings=tuple(f"h{place}" for place in range(len(rows[0]))))
    for row in rows:
        table.add(*row)
    lines = table.lines(width)
    pieces = "\n".join(lines).split("\n\n")
    for number, row in enumerate(rows):
        shown = "  ".join(piece.splitlines()[number + (2 if width else 1)] for piece in pieces)
        for cell in row:
            assert cell in shown
    if width is None:
        assert len(lines) == 1 + len(rows)
    else:
        # Wider than the terminal only where one column beside the first is.
        widest = max(table.widths()[1:], default=0)
        assert all(len(line) <= max(width, table.widths()[0] + 2 + widest) for line in lines)


def test_prose_wraps_at_words_and_numbers_do_not_wrap() -> None:
    table = Table(headings=("model", "goodput", "applies"), prose=True)
    table.add("padhye", "1.25 Mbit/s", "no: the downlink loses no packets at random at all")
    narrow = table.lines(48)
    assert all(len(line) <= 48 for line in narrow)
    assert " ".join(" ".join(line[21:].strip() for line in narrow[2:]).split()) == table.rows[0][2]
    assert table.lines(None)[1].endswith(table.rows[0][2])


def test_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Table(headings=("a", "b")).add("c")


def test_wrapped_table_repeats_the_group_heading() -> None:
    table = Table(headings=("flow", "RTT: least", ": mean", ": 95%", "limited by"))
    table.add("download", "500 ms", "612 ms", "1.1 s", "receive window")
    assert table.lines(None)[0] == "flow      RTT: least    mean    95%  limited by".replace(
        "limited by", "    limited by"
    )
    for width in range(20, 60):
        heads = [piece.splitlines()[0] for piece in "\n".join(table.lines(width)).split("\n\n")]
        named = [re.split(r"  +", head)[1:] for head in heads]
        assert len({tuple(each) for each in named}) == len(named)
        for head in named:
            # The first of a group's columns in a piece has the group's name, the others have not.
            group = [each for each in head if each != "limited by"]
            assert [each.startswith("RTT: ") for each in group] == [True, False, False][
                : len(group)
            ]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_five_flows_fit_a_terminal(tmp_path: Path, columns: int) -> None:
    scenario = tmp_path / "five.toml"
    scenario.write_text(HEAD % 5, encoding="utf-8")
    shown = in_terminal("run", str(scenario), columns=columns)
    piped = subprocess.run(
        [*COMMAND, "run", str(scenario)], capture_output=True, text=True, check=True
    ).stdout
    flows = [line for line in piped.splitlines() if line.startswith("download-")]
    assert len(flows) == 5
    for line in flows:
        name, *numbers = re.split(r"  +", line)
        rows = "  ".join(each for each in shown.splitlines() if each.startswith(f"{name} "))
        for number in numbers:
            assert re.search(rf"(?<=  ){re.escape(number)}(?=  |$)", rows), (number, rows)
    assert "…" not in shown + piped
    assert "..." not in shown + piped
    if columns >= 80:
        assert all(len(line) <= columns for line in shown.splitlines())


def test_hundred_flows_are_one_row_unless_all_is_given(tmp_path: Path) -> None:
    scenario = tmp_path / "crowd.toml"
    scenario.write_text(HEAD % 100, encoding="utf-8")

    def run(*options: str) -> list[str]:
        done = subprocess.run(
            [*COMMAND, "run", str(scenario), *options], capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    few = run()
    (row,) = [line for line in few if line.startswith("download")]
    name, number, *_ = row.split()
    assert (name, number) == ("download", "100")
    assert [line for line in few if line.startswith("access.forward ")]
    assert "--all shows every one" in few
    # Together they can't be faster than the link that they share.
    together = re.split(r"  +", row)[2]
    assert together.endswith(" Mbit/s")
    assert 0.1 < float(together.split()[0]) < 10.0
    everyone = run("--all")
    assert sum(line.startswith("download-") for line in everyone) == 100
    assert sum(line.startswith("access-") for line in everyone) == 200


def test_only_counted_names_form_groups() -> None:
    names = ["a-1", "b", "a-2", "c-1", "c-3", "d-1", "a-3", "e-02", "e-1"]
    found = groups(names)
    assert found.pop("a") == [0, 2, 6]
    # Not numbered without a gap, alone, or written as no count would.
    assert found == {name: [names.index(name)] for name in names if not name.startswith("a")}
    links = [f"access-{n}.{way}" for n in (1, 2) for way in ("forward", "return")]
    assert groups(links) == {"access.forward": [0, 2], "access.return": [1, 3]}


def test_quantiles_are_interpolated() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([1.0, 2.0], 0.5) == 1.5
    assert quantile([5.0], 0.95) == 5.0
    assert quantile(list(map(float, range(101))), 0.95) == 95.0


def test_separate_prose_column_leaves_no_blank_lines() -> None:
    table = Table(headings=("model", "goodput", "time", "applies"), prose=True)
    table.add("one", "1.25 Mbit/s", "13 s", "yes: " + "a long reason " * 6)
    table.add("two", "–", "–", "no: " + "another long reason " * 6)
    lines = table.lines(30)
    # Empty lines stand between pieces, and nowhere else; each has its headings.
    pieces = "\n".join(lines).split("\n\n")
    assert [piece.split()[0] for piece in pieces] == ["model"] * len(pieces)
    assert len(pieces) > 1


@pytest.mark.parametrize("columns", [60, 80])
def test_lists_wrap_in_a_terminal_and_not_in_a_pipe(columns: int) -> None:
    for words in (["list"], ["list", "scenarios"]):
        shown = in_terminal(*words, columns=columns)
        piped = subprocess.run(
            [*COMMAND, *words], capture_output=True, text=True, check=True
        ).stdout
        assert all(len(line) <= columns for line in shown.splitlines())
        assert shown.split() == piped.split()
        assert max(map(len, piped.splitlines())) > columns
