"""Errors of `bentpipe-gateway`: one line, and exit status 2."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from bentpipe import cli, start

PAGE = Path(__file__).parents[2] / "docs" / "gateway.md"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="optional: needs Linux")

SIDES = "--interface lan=lo --interface satellite=nosuch0"
MULTIPLEX = "--set gateways.hub.multiplex=2 --set gateways.terminal.multiplex=2"
OWN = f"{SIDES} {MULTIPLEX} --address 10.1.0.250"


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the documentation's scenario in the working folder."""
    monkeypatch.chdir(tmp_path)
    found = re.search(r"```toml\n(# office\.toml.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    Path("office.toml").write_text(found[1], encoding="utf-8")


@pytest.mark.usefixtures("office")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "which scenario? bentpipe-gateway FILE --gateway NAME; see --help"),
        ("office.toml", "expected --gateway NAME, or --link NAME: what of the file"),
        (
            "office.toml --gateway hub --link satellite",
            "expected --gateway NAME, or --link NAME: what of the file",
        ),
        (
            "office.toml --gateway hub --interface eth0",
            "--interface eth0: expected LINK=INTERFACE, such as satellite=eth1",
        ),
        (
            "office.toml --gateway hub --interface lan=lo",
            "expected interfaces for two links, got 1; each of the two sides",
        ),
        (f"office.toml --gateway hup {SIDES}", 'no gateway is "hup"; did you mean "hub"?'),
        (
            "office.toml --gateway hub --interface lan=lo --interface home=eth1",
            'no link of "hub" is "home"; known: lan, satellite',
        ),
        (
            f"office.toml --gateway hub {SIDES} --shape home",
            'no interface is given for the link "home", which is to be shaped',
        ),
        (
            f"office.toml --gateway hub {SIDES} {MULTIPLEX}",
            "office.toml:6: gateways.hub.multiplex: persistent connections between gateways need",
        ),
        (
            f"office.toml --gateway hub {OWN}",
            "--address and --peer go together: the two ends of persistent connections",
        ),
        (
            f"office.toml --gateway hub {OWN} --peer ten",
            "--peer ten: expected an IP address",
        ),
        (
            f"office.toml --gateway hub {OWN} --peer fd00::1",
            "office.toml:6: gateways.hub.multiplex: 10.1.0.250 and fd00::1 are of two",
        ),
        (
            f"office.toml --gateway hub {OWN} --peer 10.1.0.250",
            "office.toml:6: gateways.hub.multiplex: 10.1.0.250 and 10.1.0.250 are no",
        ),
        (
            f"office.toml --gateway hub {SIDES} --address 10.1.0.250 --peer 10.4.0.250",
            "office.toml:6: gateways.hub: addresses are for persistent connections between",
        ),
        (
            "office.toml --link satellite --address 10.1.0.250 --peer 10.4.0.250",
            "--address is for a gateway; a link has no persistent connections",
        ),
        (
            f"office.toml --gateway hub {SIDES} --duration 5",
            '--duration 5: expected a time such as "60 s"',
        ),
        (
            f"office.toml --gateway hub {SIDES} --duration=0s",
            "--duration 0s: expected a time such as",
        ),
        (
            "office.toml --link satellite --interface hub=lo --interface client=lo",
            'link "satellite" is between "hub" and "terminal", not "hub" and "client"',
        ),
        (
            "office.toml --link satellite --shape satellite",
            "--shape is for a gateway; a --link is as the file has it anyway",
        ),
        ("nosuch.toml --gateway hub", "nosuch.toml"),
        (f"office.toml --gateway hub {SIDES}", 'no interface is "nosuch0"; this machine has lo'),
        (
            "office.toml --gateway hub --interface lan=lo --interface satellite=lo",
            "lo: given twice",
        ),
    ],
)
def test_invalid_gateway_request_prints_one_line(
    line: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.execute(["gateway", *line.split()]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"bentpipe: {expected}"), said.err
    assert said.err.count("\n") == 1


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.execute(["gateway", "--help"]) == 0
    said = capsys.readouterr().out
    for option in ("--gateway", "--link", "--interface", "--shape", "--check", "--clean"):
        assert option in said


def test_bentpipe_gateway_runs_the_gateway_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bentpipe-gateway", "--help"])
    with pytest.raises(SystemExit) as ended:
        start.gateway_main()
    assert ended.value.code == 0
    assert "--shape" in capsys.readouterr().out
