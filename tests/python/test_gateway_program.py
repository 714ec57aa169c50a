"""The program `bentpipe-gateway` in Rust between real interfaces, beside the package's command.

`BENTPIPE_GATEWAY=PROGRAM` has all other tests of gateways run the program.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from .boxes import Box, fetch, gateway, listen, live, row, wait_until
from .commands import COMMAND, GATEWAY_PROGRAM
from .test_gateway import HUB, SERVER, SPLIT, gateway_state, write_scenario

pytestmark = [
    live,
    pytest.mark.skipif(
        not GATEWAY_PROGRAM.exists(), reason="bentpipe-gateway is not built (make setup)"
    ),
]

PROGRAM: Final = (str(GATEWAY_PROGRAM),)
COMMANDS: Final = {"package": (*COMMAND, "gateway"), "program": PROGRAM}


@pytest.fixture
def boxes() -> Iterator[list[Box]]:
    with row("server", "hub", "client") as made:
        yield made


def test_payload_is_intact_and_signals_end_it(boxes: list[Box], tmp_path: Path) -> None:
    server, hub, client = boxes
    listen(server)
    for number in (signal.SIGTERM, signal.SIGINT):
        with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB, command=PROGRAM) as running:
            assert len(gateway_state(hub)) == 18
            for address in SERVER:
                fetch(client, address)
            told = running.end(number)
        assert gateway_state(hub) == []
        assert told["gateways"][0]["connections"]["split"] == 2
        assert told["packets_in"] > 2 * 300_000 // 1448


def test_ignored_hangup_stays_ignored(boxes: list[Box], tmp_path: Path) -> None:
    _, hub, _ = boxes
    file = write_scenario(tmp_path, SPLIT)
    with gateway(hub, file, *HUB, command=["nohup", *PROGRAM]) as running:
        running.process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            running.process.wait(timeout=0.5)
        running.end()
    assert gateway_state(hub) == []


def test_killed_program_is_cleaned_up_after(boxes: list[Box], tmp_path: Path) -> None:
    _, hub, _ = boxes
    with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB, command=PROGRAM) as running:
        running.kill_with_watchdog()
    assert json.loads(hub.run(*PROGRAM, "--clean", "--json")) == {"rules": 10, "groups": 2}
    assert hub.run(*PROGRAM, "--clean") == (
        "removed 0 rules, and took 0 interfaces out of groups\n"
    )


@pytest.mark.parametrize("words", [(), ("--json",)], ids=["text", "json"])
def test_check_says_the_same_in_both(
    boxes: list[Box], tmp_path: Path, words: tuple[str, ...]
) -> None:
    _, hub, _ = boxes
    hub.sysctl("net.ipv4.ip_forward=0")
    line = [str(write_scenario(tmp_path, SPLIT)), *HUB, *words]
    by_package = hub.run(*COMMANDS["package"], *line, "--check")
    assert "gateway hub: lan is to-server (MTU 1500)" in by_package
    assert "the kernel does not forward IPv4" in by_package
    assert hub.run(*PROGRAM, *line, "--check") == by_package
    assert hub.run(*PROGRAM, "check", *line) == by_package
    assert gateway_state(hub) == []


def shape_of(text: str) -> str:
    """Return a text without its numbers and the columns' widths, which differ between runs."""
    return re.sub(r" +", " ", re.sub(r"[\d.,]+ (µs|ms|s|k?B)|[\d.,]+", "N", text))


def test_result_is_printed_alike_by_both(
    boxes: list[Box], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, hub, client = boxes
    listen(server)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(each for each in sys.path if each))
    file = write_scenario(tmp_path, SPLIT)
    printed = {}
    for name, command in COMMANDS.items():
        running = hub.start(*command, str(file), *HUB, "--pcap", "satellite")
        wait_until(lambda: len(gateway_state(hub)) == 18, "it is set up")
        assert Path(".satellite.pcapng.lock").exists()
        # Another command may not write the same capture.
        other = subprocess.run(
            hub.within(*PROGRAM, str(file), *HUB, "--pcap", "satellite"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert other.stderr == (
            "bentpipe: --pcap satellite: another command is writing satellite.pcapng\n"
        )
        fetch(client, SERVER[0])
        running.terminate()
        out, err = running.communicate(timeout=10)
        assert running.returncode == 0, err
        assert err.startswith("bentpipe-gateway: gateway hub: lan is to-server")
        printed[name] = out
        assert not Path(".satellite.pcapng.lock").exists()
    assert shape_of(printed["program"]) == shape_of(printed["package"])
    assert re.search(
        r"^hub +split +1 split, 0 passed, 0 refused ", printed["program"], re.MULTILINE
    )
    assert re.search(r"^satellite.forward +[\d,]+ +[\d.]+ kB +– +– +–$", printed["program"], re.M)
    assert printed["program"].endswith("wrote satellite.pcapng\n")


def test_closed_standard_output_ends_it_without_a_message(boxes: list[Box], tmp_path: Path) -> None:
    _, hub, _ = boxes
    reader, writer = os.pipe()
    os.close(reader)
    line = [*PROGRAM, str(write_scenario(tmp_path, SPLIT)), *HUB, "--check"]
    done = subprocess.run(hub.within(*line), stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(hub.within(*line), stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        b"bentpipe: standard output: no space left on device\n",
    )
