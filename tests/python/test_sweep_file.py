"""The sweep file: axes, ranges, and what is said when something is wrong."""

from __future__ import annotations

import ast
import io
import itertools
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe import ScenarioError, _native
from bentpipe.errors import RequestError
from bentpipe.scenario import ready_made
from bentpipe.sweeps import Sweep, load_definition
from bentpipe.sweeps.quantities import parse_quantity
from bentpipe.sweeps.ranges import RangeError, expand_range
from bentpipe.toml import literal

from .networks import pair

SCENARIO = pair(
    "small", duration="10 s", rate="2 Mbit/s", delay="250 ms", size="100 kB", apart=True
)
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def read(tmp_path: Path) -> Any:
    (tmp_path / "small.toml").write_text(SCENARIO, encoding="utf-8")

    def read(text: str) -> Sweep:
        path = tmp_path / "sweep.toml"
        path.write_text(text, encoding="utf-8")
        return load_definition(path)

    return read


def test_axes_are_lists_ranges_zips_and_fixed_settings(read: Any) -> None:
    sweep = read("""
scenario = "small.toml"
[set]
duration = "5 s"
[axes]
links.satellite.forward.delay = ["250 ms", "0.3 s"]
hosts.server.tcp = { initial_window = ["10 segments", "20 segments"] }
[zip.network]
labels = ["slow", "fast"]
links.satellite.forward.rate = ["64 kbit/s", "2 Mbit/s"]
links.satellite.return.rate = { values = ["16 kbit/s", "64 kbit/s"], name = "back" }
[axes.seed]
count = 3
from = 7
""")
    # Axes stand in the file's order; [axes.seed] comes last in it.
    assert [axis.name for axis in sweep.axes] == [
        *("delay_s", "initial_window_segments", "network", "seed"),
    ]
    assert sweep.shape == (2, 2, 2, 3)
    assert sweep.axes[0].coordinates == (0.25, 0.3)
    assert sweep.axes[3].coordinates == (7, 8, 9)
    network = sweep.axes[2]
    assert network.coordinates == ("slow", "fast")
    assert {each.name: each.coordinates for each in network.variables} == {
        "rate_bps": (64_000, 2_000_000),
        "back": (16_000, 64_000),
    }
    last = sweep.scenario_of(sweep.cell(len(sweep) - 1))
    assert dict(last.settings) == {
        "duration": '"5 s"',
        "links.satellite.forward.delay": '"0.3 s"',
        "hosts.server.tcp.initial_window": '"20 segments"',
        "links.satellite.forward.rate": '"2 Mbit/s"',
        "links.satellite.return.rate": '"64 kbit/s"',
        "seed": "9",
    }
    assert Sweep.from_json(sweep.as_json()).as_json() == sweep.as_json()


def test_axis_names_are_the_shortest_unambiguous_suffixes(read: Any) -> None:
    sweep = read("""
scenario = "small.toml"
[axes]
links.satellite.forward.delay = ["250 ms"]
links.satellite.return.delay = ["250 ms"]
links.satellite.forward.queue.limit = ["10 packets", "64 KiB"]
hosts.server.tcp.nagle = [true, false]
""")
    assert [axis.name for axis in sweep.axes] == [
        *("forward_delay_s", "return_delay_s", "limit", "nagle"),
    ]


def test_table_values_of_an_axis_are_labelled_as_toml(read: Any) -> None:
    sweep = read("""
scenario = "geo-consumer"
[axes]
links.satellite.forward.queue = [
    { kind = "drop-tail", limit = "10 packets" }, { kind = "drop-tail", limit = "64 KiB" } ]
""")
    assert sweep.axes[0].coordinates == (
        '{ kind = "drop-tail", limit = "10 packets" }',
        '{ kind = "drop-tail", limit = "64 KiB" }',
    )


WRONG = [
    ("", ":1: scenario: missing; expected a scenario file"),
    ("scenario = 5", ":1: scenario: expected a string, got 5"),
    ('scenario = "smal"', ":1: scenario: smal: no such file"),
    ('scenario = "geo-consumr"', "did you mean the ready-made scenario 'geo-consumer'?"),
    ('scenario = "small.toml"', ":1: no axes; expected a table [axes]"),
    ("scenario = ", ":1: expected a value: a string in quotes, a number, true or false"),
    ('scenario = "small.toml"\nseed = 5', ":2: seed: unknown key; what varies goes under [axes]"),
    ('scenario = "small.toml"\naxis = {}', ':2: axis: unknown key; did you mean "axes"?'),
    ("[axes]\nseed = 5", ":3: axes.seed: expected a list of values, or a range"),
    ("[axes]\nseed = []", ":3: axes.seed: expected a list of values"),
    ("[axes]\nseed = {}", ":3: axes.seed: expected a list of seeds, or how many"),
    ("[axes]\nseed = [1.5]", ":3: axes.seed: expected a whole number, got 1.5"),
    ("[axes]\nseed = { count = 0 }", ":3: axes.seed: expected a list of seeds, or how many"),
    ("[axes]\nseed = [\n 1,\n 2,\n 1 ]", ":6: axes.seed: 1 appears twice"),
    ("[axes]\nseed = [1979-05-27]", ":3: axes.seed: expected a string, a number"),
    ("[axes]\nhosts.server.tcp.nagle = [inf]", "expected a finite number, got inf"),
    (
        '[axes]\nlinks.satellite.forward.delay = ["1 s", "1000 ms"]',
        ':3: axes.links.satellite.forward.delay: "1000 ms" appears twice, the same as "1 s"',
    ),
    (
        '[axes]\nlinks.satellite.forward.delay = ["1 s",\n "soon"]',
        ':4: axes.links.satellite.forward.delay: expected a delay up to 1 h such as "250 ms"',
    ),
    (
        "[axes]\nlinks.satellite.forward.dely = [1]",
        ':3: axes.links.satellite.forward.dely: unknown key; did you mean "delay"?',
    ),
    (
        '[axes]\nlinks.satelite.forward.delay = ["1 s"]',
        'the scenario has no link "satelite"; did you mean "satellite"?',
    ),
    ("[set]\nhosts.clint.tcp.nagle = true\n[axes]\nseed = [1]", 'no host "clint"; did you mean'),
    ("[set]\nduration = 5\n[axes]\nseed = [1]", ":3: set.duration: expected a length of time"),
    ("[set]\nseed = 5\n[axes]\nseed = [1]", ":3: set.seed: varies along the axis 'seed'"),
    (
        '[axes]\nlinks.satellite.forward = [{}]\n"links.satellite.forward.delay" = ["1 s"]',
        "varies already, along the axis 'forward': links.satellite.forward",
    ),
    (
        '[zip.pair]\nseed = [1, 2]\nlinks.satellite.forward.delay = ["1 s"]',
        ":4: zip.pair.links.satellite.forward.delay: expected 2 values, as seed has, got 1",
    ),
    (
        '[axes]\nlinks.satellite.forward.delay = { from = "2 s", to = "1 s", count = 3 }',
        ':3: axes.links.satellite.forward.delay.to: expected more than from = "2 s", got "1 s"',
    ),
    (
        '[zip.pair]\nlabels = ["a"]\nseed = [1, 2]',
        ":3: zip.pair.labels: expected 2 strings, got 1",
    ),
    (
        '[zip.pair]\nseed = [1]\nlinks.satellite.forward.delay = ["1 s", "2 s"]',
        ":4: zip.pair.links.satellite.forward.delay: expected 1 value, as seed has, got 2",
    ),
    ("[zip.pair]\nlabels = [1]\nseed = [1]", ":3: zip.pair.labels: expected 1 strings"),
    ("[zip]\nseed = [1]", ":3: zip.seed: expected a table of keys"),
    (
        "[axes]\nhosts.server.tcp.nagle = { values = [true], name = 'goodput_bps' }",
        "named 'goodput_bps', as one of the results is",
    ),
    (
        '[axes]\nlinks.satellite.forward.delay = { from = "1 s", to = "2 s", cuont = 3 }',
        ':3: axes.links.satellite.forward.delay.cuont: unknown key; did you mean "count"?',
    ),
    (
        '[axes]\nlinks.satellite.forward.delay = { from = "1 s", to = "2 Mbit/s", count = 3 }',
        "expected the unit of from, s, got Mbit/s",
    ),
    ("series = 1\n[axes]\nseed = [1]", ":2: series: expected true or false, got 1"),
    ("[axes]\nseed = [1]\nseed = [2]", ':4: "seed" stands twice: a key or a table is given once'),
    ("[axes]\nseed = { count = 100001 }", "{ from = 100, count = 5 }; count is 1 to 100,000"),
]


@pytest.mark.parametrize(("text", "expected"), WRONG, ids=lambda each: str(each)[:40])
def test_sweep_file_errors_name_the_line(read: Any, text: str, expected: str) -> None:
    if not text.startswith(("scenario", " ")) and text:
        text = f'scenario = "small.toml"\n{text}'
    with pytest.raises(RequestError) as caught:
        read(text)
    message = str(caught.value)
    assert expected in message
    assert "sweep.toml:" in message
    assert "\n" not in message


def test_error_in_the_swept_scenario_names_its_line(read: Any, tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text(SCENARIO + "\nfoo = 1", encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"wrong\.toml:16"):
        read('scenario = "wrong.toml"\naxes.seed = [1]')


def test_unreadable_sweep_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no such file"):
        load_definition(tmp_path / "none.toml")
    with pytest.raises(RequestError, match="is a folder"):
        load_definition(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# line 1\nname = '\xe9'")
    with pytest.raises(RequestError, match=r"latin\.toml:2: not UTF-8 text$"):
        load_definition(tmp_path / "latin.toml")
    # As long as a disk, and nothing on it but perhaps a byte order mark.
    refused = r"long\.toml: longer than 16 MiB: not a sweep file$"
    for mark in ("", "\N{BYTE ORDER MARK}"):
        with (tmp_path / "long.toml").open("wb") as file:
            file.write(mark.encode())
            file.truncate(1 << 40)
        with pytest.raises(RequestError, match=refused):
            load_definition(tmp_path / "long.toml")


def test_long_sweep_is_read_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small.toml").write_text(SCENARIO, encoding="utf-8")
    text = f"scenario = 'small.toml'\n{'#' * (2 << 20)}\naxes.seed = [1, 2]\n"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert len(load_definition("-")) == 2


def test_byte_order_mark_in_a_sweep_file_is_ignored(read: Any) -> None:
    # Windows' editors write one; the scenario reader passes over it, too.
    assert len(read("\N{BYTE ORDER MARK}scenario = 'small.toml'\naxes.seed = [1, 2]\n")) == 2


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: str(path.name))
def test_example_sweeps_load(path: Path) -> None:
    assert len(load_definition(path)) > 1


def test_documented_sweep_has_its_axes(read: Any) -> None:
    text = (EXAMPLES.parent / "docs" / "sweep.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    sweep = read(block)
    assert {axis.name: len(axis) for axis in sweep.axes} == {
        "congestion_control": 2,
        "delay_s": 3,
        "bit_error_rate": 3,
        "seed": 5,
        "queue": 2,
    }
    calls = re.findall(r"bentpipe\.sweep\(\n +(\{.*?\n    \}),", text, re.DOTALL)
    assert [len(load_definition(ast.literal_eval(call))) for call in calls] == [10]


RANGES: list[tuple[dict[str, object], list[object]]] = [
    ({"from": 1, "to": 5, "step": 2}, [1, 3, 5]),
    ({"from": 1, "to": 6, "step": 2}, [1, 3, 5]),
    ({"from": 0.1, "to": 0.3, "count": 3}, [0.1, 0.2, 0.3]),
    ({"from": "100 ms", "to": "0.6 s", "count": 3}, ["100 ms", "350 ms", "0.6 s"]),
    ({"from": "100 ms", "to": "0.3 s", "step": "0.1 s"}, ["100 ms", "200 ms", "0.3 s"]),
    ({"from": 1e-8, "to": 1e-5, "count": 4, "scale": "log"}, [1e-8, 1e-7, 1e-6, 1e-5]),
    ({"from": 1e-8, "to": 1e-7, "per_decade": 2, "scale": "log"}, [1e-8, 3.16227766017e-8, 1e-7]),
    ({"from": 1, "to": 1000, "count": 4, "scale": "log"}, [1, 10, 100, 1000]),
    (
        {"from": "10 packets", "to": "100 packets", "count": 3, "scale": "log"},
        ["10 packets", "32 packets", "100 packets"],
    ),
    (
        {"from": "1 kbit/s", "to": "10 Gbit/s", "per_decade": 1, "scale": "log"},
        [*(f"{10**n} kbit/s" for n in range(7)), "10 Gbit/s"],
    ),
]


@pytest.mark.parametrize(("spec", "values"), RANGES, ids=lambda each: str(each)[:50])
def test_ranges_expand_to_their_values(spec: dict[str, object], values: list[object]) -> None:
    assert list(expand_range(spec)) == values
    assert [type(value) for value in expand_range(spec)] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("spec", "key", "message"),
    [
        ({"from": 1}, "", "to is missing"),
        ({"from": 5, "to": 1, "count": 2}, "to", "more than from"),
        ({"from": 1, "to": 5}, "", "either count or step, got neither"),
        ({"from": 1, "to": 5, "count": 2, "step": 1}, "", "got both"),
        ({"from": 1, "to": 5, "per_decade": 2}, "per_decade", "not on a linear scale"),
        ({"from": 1, "to": 5, "step": 1, "scale": "log"}, "step", "not on a log scale"),
        ({"from": 0, "to": 5, "count": 2, "scale": "log"}, "from", "more than 0"),
        ({"from": 1, "to": 2, "count": 5}, "count", "whole numbers"),
        ({"from": 1, "to": 5, "count": 1}, "count", "from 2 to"),
        ({"from": 1, "to": 5, "count": True}, "count", "from 2 to"),
        ({"from": 1, "to": 5, "step": 0}, "step", "more than 0"),
        ({"from": 1, "to": 10**9, "step": 1}, "step", "at most"),
        ({"from": "1 s", "to": 5, "count": 2}, "to", "a unit at both ends"),
        ({"from": "1 s", "to": "5 s", "step": 1}, "step", "a unit"),
        ({"from": "x", "to": 5, "count": 2}, "from", "a number, or a quantity"),
        ({"from": 1, "to": 5, "count": 2, "scale": "cubic"}, "scale", '"linear" or "log"'),
    ],
)
def test_invalid_ranges_are_refused(spec: dict[str, object], key: str, message: str) -> None:
    with pytest.raises(RangeError, match=message) as caught:
        expand_range(spec)
    assert caught.value.key == key


@given(
    low=st.floats(1e-9, 1e6),
    factor=st.floats(1.01, 1e6),
    count=st.integers(2, 200),
    scale=st.sampled_from(["linear", "log"]),
)
def test_range_includes_its_ends_in_order(
    low: float, factor: float, count: int, scale: str
) -> None:
    high = low * factor
    values = [
        float(value)
        for value in expand_range({"from": low, "to": high, "count": count, "scale": scale})
    ]
    assert (len(values), values[0], values[-1]) == (count, low, high)
    assert values == sorted(values)
    if scale == "log":
        steps = [math.log(b / a) for a, b in itertools.pairwise(values)]
    else:
        steps = [b - a for a, b in itertools.pairwise(values)]
    assert max(steps) - min(steps) <= 1e-9 * max(abs(math.log(low)), high, 1.0)


axes_strategy = st.dictionaries(
    st.sampled_from(
        [
            "seed",
            "hosts.server.tcp.initial_window",
            "links.satellite.forward.delay",
            "links.satellite.forward.errors.packet_loss_rate",
            "flows.download.app.size",
        ]
    ),
    st.integers(1, 5),
    min_size=1,
)


def _values(key: str, count: int) -> list[Any]:
    made: dict[str, Any] = {
        "seed": lambda n: n,
        "hosts.server.tcp.initial_window": lambda n: f"{n} segments",
        "links.satellite.forward.delay": lambda n: f"{n} ms",
        "links.satellite.forward.errors.packet_loss_rate": lambda n: n / 100,
        "flows.download.app.size": lambda n: f"{n} kB",
    }
    return [made[key](n + 1) for n in range(count)]


@given(lengths=axes_strategy)
def test_cells_are_the_product_of_the_axes(lengths: dict[str, int]) -> None:
    """In the order of nested loops, each exactly once, each with a value of every axis."""
    from bentpipe.scenario import Scenario

    axes = {key: _values(key, count) for key, count in lengths.items()}
    scenario = Scenario(path=Path("small.toml"), text=SCENARIO)
    sweep = load_definition({"scenario": scenario, "axes": axes})
    cells = [dict(sweep.scenario_of(cell).settings) for cell in sweep.cells()]
    product = itertools.product(*axes.values())
    expected = [
        {key: literal(value) for key, value in zip(axes, values, strict=True)} for values in product
    ]
    assert cells == expected
    assert [cell.number for cell in sweep.cells()] == list(range(len(sweep)))
    places = [tuple(sweep.coordinates(cell).values()) for cell in sweep.cells()]
    assert len(set(places)) == len(places) == math.prod(lengths.values())


values_strategy = st.recursive(
    st.text(max_size=5) | st.integers(-(2**40), 2**40) | st.booleans() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(value=values_strategy)
def test_literals_are_valid_toml(value: Any) -> None:
    assert tomllib.loads(f"key = {literal(value)}")["key"] == value


def key_lines(text: str) -> dict[tuple[str | int, ...], int]:
    """Return the lines of what is known to be TOML."""
    found = _native.key_lines(text)
    assert found is not None
    return found


def paths(value: object, prefix: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    """Return the paths in a value as tomllib read it."""
    items: Any = []
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    found = {prefix} if prefix else set()
    for key, item in items:
        found |= paths(item, (*prefix, key))
    return found


@given(tables=st.lists(st.tuples(st.integers(0, 3), values_strategy), max_size=8))
def test_every_key_has_its_line_number(tables: list[tuple[int, Any]]) -> None:
    lines, expected = ["# a comment = [", ""], {}
    for index, (blank, value) in enumerate(tables):
        lines += [""] * blank
        expected[f"key {index}",] = len(lines) + 1
        lines.append(f'"key {index}" = {literal(value)} # }} ] "')
    text = "\n".join(lines)
    found = key_lines(text)
    assert found.keys() == paths(tomllib.loads(text))
    assert {key: line for key, line in found.items() if len(key) == 1} == expected


FORMS = '''
a.b."c.d" = 1
'e' = """
x = 1 "" [
\\""" """"
f = \'\'\'
g = 1\'\'\'
h = [ # ]
  1, "]", [2,
  3], { i = 4, j.k = 5 },
]
[[t]]
x = 1
[[t]]
x = 2
[t.sub]
y = 2020-01-01 00:00:00
[ a . z ]
w = -1.5e3
[[t.more]]
v = 0
'''


def test_every_toml_form_is_scanned() -> None:
    found = key_lines(FORMS)
    assert found.keys() == paths(tomllib.loads(FORMS))
    assert found["a", "b", "c.d"] == 2
    assert found["e",] == 3
    assert found["f",] == 6
    assert (found["h", 1], found["h", 2, 1], found["h", 3, "j", "k"]) == (9, 10, 10)
    assert (found["t", 0, "x"], found["t", 1, "x"], found["t", 1, "sub", "y"]) == (13, 15, 17)
    assert found["a", "z", "w"] == 19
    assert found["t", 1, "more", 0, "v"] == 21


@pytest.mark.parametrize("path", ready_made().values(), ids=lambda path: str(path.stem))
def test_ready_made_scenarios_are_scanned(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert key_lines(text).keys() == paths(tomllib.loads(text))


def test_quantities_are_parsed() -> None:
    quantity = parse_quantity("1.5 KiB")
    assert quantity is not None
    assert (quantity.base_unit, quantity.in_base_unit) == ("bytes", 1536.0)
    for text in ("16/15", "off", "3 parsec", "cubic", "", "1 s 2", "-1 s"):
        assert parse_quantity(text) is None


def test_invalid_axis_value_names_its_line(read: Any) -> None:
    with pytest.raises(
        RequestError, match=r"sweep\.toml:5: axes\.links\.satellite\.forward\.delay: ex"
    ):
        read(
            'scenario = "small.toml"\n[axes]\nseed = { count = 2 }\n'
            'hosts.server.tcp.nagle = [true, false]\nlinks.satellite.forward.delay = ["fast"]\n'
        )
