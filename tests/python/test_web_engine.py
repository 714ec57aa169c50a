"""The simulator as a WebAssembly module has the results of the native one, byte for byte."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bentpipe import _native, toml

from .random_networks import random_network

pytestmark = pytest.mark.web

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "target/web/engine.wasm"
DRIVER = ROOT / "web/tests/summaries.mjs"
RANDOM_NETWORKS = 200


def native(text: str) -> dict[str, Any]:
    """Return a run's summary, or the refusal, of the native simulator."""
    try:
        output = _native.run("scenario.toml", text=text, no_series=True)
    except _native.ScenarioError as error:
        return {"refusal": str(error)}
    return {"summary": without_wall_time(output.summary_json)}


def without_wall_time(summary: str) -> str:
    return re.sub(r'"wall_s":[^,]*', '"wall_s":0', summary)


def in_module(texts: list[str]) -> list[dict[str, Any]]:
    """Return the same of the WebAssembly module, in Node."""
    requests = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    command = ["node", str(DRIVER), str(MODULE)]
    done = subprocess.run(command, input=requests, capture_output=True, text=True, check=True)
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    for reply in replies:
        reply.pop("seconds", None)
        if "summary" in reply:
            reply["summary"] = without_wall_time(reply["summary"])
    return replies


def check(texts: dict[str, str]) -> None:
    replies = in_module(list(texts.values()))
    assert len(replies) == len(texts)
    for name, reply in zip(texts, replies, strict=True):
        assert reply == native(texts[name]), name


@pytest.mark.parametrize("folder", ["scenarios", "examples/gallery"])
def test_scenarios_have_the_same_summaries(folder: str) -> None:
    check({path.stem: path.read_text("utf-8") for path in sorted((ROOT / folder).glob("*.toml"))})


def test_lessons_have_the_same_summaries() -> None:
    block = re.compile(r"^```toml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    networks: dict[str, str] = {}
    for path in sorted((ROOT / "examples/lessons").glob("*.md")):
        found = block.findall(path.read_text("utf-8"))
        networks |= {f"{path.stem} {place}": text for place, text in enumerate(found)}
    assert len(networks) >= 8
    check(networks)


def test_random_networks_have_the_same_summaries() -> None:
    check({str(seed): toml.document(random_network(seed)) for seed in range(RANDOM_NETWORKS)})


def test_refusals_are_the_same() -> None:
    text = (ROOT / "scenarios/geo-consumer.toml").read_text("utf-8")
    wrong = {
        "unit": text.replace('"25 Mbit/s"', "25"),
        "key": text.replace("duration", "durations"),
        "syntax": text.replace("[hosts.server]", "[hosts.server"),
        "empty": "",
        "long": "#" * (1 << 20) + "\n" + text,
    }
    for name, reply in zip(wrong, in_module(list(wrong.values())), strict=True):
        assert "refusal" in reply, name
    check(wrong)
