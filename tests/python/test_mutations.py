"""Scenario files with mistakes in them: an answer each, at the right line, and no panic.

The ready-made scenarios are changed at random, as by a typing error or an attacker. Accepted files
are predicted and simulated. `BENTPIPE_MUTATIONS` says how many files the slow test makes.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

import bentpipe
from bentpipe import RequestError, RunError, ScenarioError, WorkError
from bentpipe.scenario import Scenario, ready_made

FILES = {name: path.read_text("utf-8") for name, path in ready_made().items()}
ALL_LINES = sorted({line for text in FILES.values() for line in text.splitlines()})
FEW, MANY = 150, int(os.environ.get("BENTPIPE_MUTATIONS", "7500"))

# Words that stand for a value somewhere, right or wrong.
WORDS = (
    *('""', '"x"', "'''", "{}", "[]", "{", "[", "true", "nan", "inf", "-inf", "0", "-1", "1e400"),
    *("9223372036854775808", "1979-05-27", '"0 s"', '"1 ns"', '"1 h"', '"73 h"', '"0 bit/s"'),
    *('"1 bit/s"', '"1 Tbit/s"', '"0 B"', '"1 B"', '"1 GiB"', '"1 packet"', '"0 packets"'),
    *('"1 segment"', '"100000 segments"', '"every-change"', '"server"', '"client"', '"client-1"'),
    *('"client-999"', "1e-300", "1.0", "0.999999", "60000", '"é\\u0000"', '{ kind = "bulk" }'),
    *('{ kind = "compaction" }', '{ kind = "fair", limit = "1 packet" }', '{ kind = "red" }'),
    *("{ packet_loss_rate = 1 }", "{ bit_error_rate = 1 }", '["server", "server"]'),
)
FACTORS = (0.0, -1.0, 1e-12, 1e-6, 1e-3, 0.5, 2.0, 1e3, 1e6, 1e12)

Lines = list[str]


def value_replaced(lines: Lines, at: int, rng: random.Random) -> None:
    """Another value behind an equals sign of that line."""
    places = [found.end() for found in re.finditer(r"= *", lines[at])]
    if places:
        start = rng.choice(places)
        rest = re.match(r'"[^"]*"|\{.*\}|\[.*\]|[^,}\]#]*', lines[at][start:])
        end = start + (rest.end() if rest else 0)
        lines[at] = lines[at][:start] + rng.choice(WORDS) + lines[at][end:]


def number_scaled(lines: Lines, at: int, rng: random.Random) -> None:
    """A number that is much larger, much smaller, negative or zero."""
    numbers = list(re.finditer(r"(?<![\w.-])\d+(\.\d+)?(e-?\d+)?", lines[at].partition("#")[0]))
    if numbers:
        number = rng.choice(numbers)
        scaled = float(number[0]) * rng.choice(FACTORS)
        text = f"{scaled:.0f}" if "." not in number[0] and scaled >= 1 else f"{scaled:g}"
        lines[at] = lines[at][: number.start()] + text + lines[at][number.end() :]


def key_misspelt(lines: Lines, at: int, rng: random.Random) -> None:
    """A word with a letter too many, too few, or another one."""
    words = list(re.finditer(r"[a-z_-]{3,}", lines[at].partition("#")[0]))
    if words:
        place = rng.randrange(*rng.choice(words).span())
        letter = rng.choice(["", "x", lines[at][place] * 2, "_", "."])
        lines[at] = lines[at][:place] + letter + lines[at][place + 1 :]


def line_deleted(lines: Lines, at: int, rng: random.Random) -> None:
    """A line that was forgotten."""
    del rng
    lines[at] = "#"


def line_doubled(lines: Lines, at: int, rng: random.Random) -> None:
    """A line twice, or a line of another file."""
    lines[at] = lines[at] + "\n" + (lines[at] if rng.random() < 0.3 else rng.choice(ALL_LINES))


def cut(lines: Lines, at: int, rng: random.Random) -> None:
    """A few characters less."""
    if lines[at]:
        start = rng.randrange(len(lines[at]))
        lines[at] = lines[at][:start] + lines[at][start + rng.randrange(1, 9) :]


MUTATIONS: tuple[Callable[[Lines, int, random.Random], None], ...] = (
    *(value_replaced, value_replaced, number_scaled, number_scaled, number_scaled),
    *(key_misspelt, line_deleted, line_doubled, cut),
)


def mutated(number: int) -> tuple[str, list[int]]:
    """Return a file, and the lines that were changed, from 1; the same for the same number."""
    rng = random.Random(number)
    lines = FILES[rng.choice(sorted(FILES))].splitlines()
    places = sorted({rng.randrange(len(lines)) for _ in range(rng.choice([1, 1, 1, 2, 3]))})
    # From the end: a line that becomes two moves those below it.
    for at in reversed(places):
        rng.choice(MUTATIONS)(lines, at, rng)
    above = {at: "\n".join(lines[: at + 1]).count("\n") + 1 for at in places}
    return "\n".join(lines) + "\n", [above[at] for at in places]


def key_on(line: str) -> list[str]:
    """Return the parts of the keys and names that a line speaks of."""
    return re.findall(r"[\w+-]+", line)


def check_line(said: str, text: str, changed: list[int]) -> None:
    """The line that is named is one where a part of the key that is named stands."""
    assert "\n" not in said
    assert len(said) < 1000
    found = re.fullmatch(r"mutated\.toml:(\d+): (?:([\w.\[\]+-]+): )?(.*)", said)
    assert found is not None
    number, key, message = int(found[1]), found[2], found[3]
    lines = text.split("\n")
    assert 1 <= number <= len(lines)
    if key is None:
        # It is no TOML, which is seen where it is wrong, or where something else should have come.
        assert number >= min(changed) - 1
        return
    words = key_on(lines[number - 1])
    parts = re.split(r"[.\[\]]+", key)
    # "client-2" is one of those that the table "client" makes.
    parts += [part.rpartition("-")[0] for part in parts]
    # An item of an array may have a line of its own, below the key's.
    opened = [line for line in lines[: number - 1] if line.partition("#")[0].rstrip().endswith("[")]
    words += key_on(opened[-1]) if opened and lines[number - 1].startswith(" ") else []
    # If it is a string, it is quoted.
    parts += [part for quoted in re.findall(r'"([^"]*)"', message) for part in quoted.split(".")]
    # Without any table, what is missing is missing in the file.
    assert set(parts) & set(words) or ("missing" in message and number == 1)


def check_words(error: Exception) -> None:
    """An error that was foreseen, in one line."""
    for word in ("internal", "panic", "\n"):
        assert word not in str(error)


class TookLongError(Exception):
    """Nobody waits for this one."""


def raise_timeout(*_: float) -> None:
    raise TookLongError


def check(number: int) -> str:
    """Try one file; return what it came to."""
    text, changed = mutated(number)
    scenario = Scenario(path=Path("mutated.toml"), text=text)
    try:
        scenario.resolved()
    except ScenarioError as error:
        check_line(str(error), text, changed)
        return "refused"
    try:
        predicted = json.dumps(asdict(bentpipe.predict(scenario)))
        json.loads(predicted, parse_constant=pytest.fail)
    except (RequestError, WorkError) as error:
        check_words(error)
    try:
        result = bentpipe.run(scenario, no_probes=number % 2 == 0, progress=raise_timeout)
        json.loads(result.summary_json, parse_constant=pytest.fail)
    except TookLongError:
        return "cut short"
    except RunError as error:
        check_words(error)
        return "failed"
    return "simulated"


def check_all(count: int) -> dict[str, int]:
    outcomes: dict[str, int] = {}
    for number in range(count):
        try:
            outcome = check(number)
        except BaseException:
            # The number makes the file again: mutated(NUMBER).
            print(f"mutation {number}:\n{mutated(number)[0]}")
            raise
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    print(outcomes)
    return outcomes


def test_few_mutated_scenarios_are_refused_or_simulated() -> None:
    outcomes = check_all(FEW)
    # Neither is what the test is about if all files are refused, or none.
    assert outcomes["refused"] > FEW // 4
    assert outcomes["simulated"] + outcomes.get("cut short", 0) > FEW // 4


@pytest.mark.slow
def test_many_mutated_scenarios_are_refused_or_simulated() -> None:
    check_all(MANY)
    # Kilobytes on Linux: no file may make the simulator take all that there is.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20
