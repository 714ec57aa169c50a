"""The command line of `bentpipe-gateway`, as the package's command and as the program in Rust."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import bentpipe
from bentpipe import _native, cli, start
from bentpipe.cli.commands import COMMANDS
from bentpipe.scenario import examples, ready_made

from .commands import GATEWAY_PROGRAM, CommandResult

PAGE = Path(__file__).parents[2] / "docs" / "gateway.md"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="optional: needs Linux")

SIDES = "--interface lan=lo --interface satellite=nosuch0"
MULTIPLEX = "--set gateways.hub.multiplex=2 --set gateways.terminal.multiplex=2"
OWN = f"{SIDES} {MULTIPLEX} --address 10.1.0.250"


Run = Callable[..., CommandResult]

UNBUILT: Final = "bentpipe-gateway is not built (make setup)"
# Each command line is read by both: the outcomes are the same.
PACKAGE: Final = "package"
PROGRAM: Final = pytest.param(
    "program",
    marks=pytest.mark.skipif(not GATEWAY_PROGRAM.exists(), reason=UNBUILT),
)


@pytest.fixture(params=[PACKAGE, PROGRAM])
def run(request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the command with words."""

    def package(*words: str | bytes) -> CommandResult:
        decoded = [each.decode(errors="surrogateescape") if isinstance(each, bytes) else each
                   for each in words]  # fmt: skip
        status = cli.execute(["gateway", *decoded])
        return CommandResult(status, *capfd.readouterr())

    def program(*words: str | bytes) -> CommandResult:
        done = subprocess.run(
            [GATEWAY_PROGRAM, *words], capture_output=True, text=True, check=False, timeout=30
        )
        return CommandResult(done.returncode, done.stdout, done.stderr)

    return package if request.param == PACKAGE else program


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
def test_invalid_gateway_request_prints_one_line(line: str, expected: str, run: Run) -> None:
    said = run(*line.split())
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"bentpipe: {expected}"), said.err
    assert said.err.count("\n") == 1


SEEDS = "expected a whole number from 0 to 18446744073709551615"


@pytest.mark.usefixtures("office")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("office.toml --nosuch", "No such option: --nosuch"),
        ("office.toml --gatew hub", "No such option: --gatew (Possible options: --gateway)"),
        ("office.toml --gateway", "Option '--gateway' requires an argument."),
        ("office.toml other.toml", "Got unexpected extra argument(s) (other.toml)"),
        ("office.toml -- --other", "Got unexpected extra argument(s) (--other)"),
        ("office.toml --check=1", "Option '--check' does not take a value."),
        ("office.toml --seed a", f"Invalid value for '--seed': {SEEDS}"),
        ("office.toml --seed -1", f"Invalid value for '--seed': {SEEDS}"),
        ("office.toml --seed=", f"Invalid value for '--seed': {SEEDS}"),
        ("office.toml --snap 0", "Invalid value for '--snap': expected a whole number from 1 to"),
        ("office.toml --link satellite --set delay", "--set 'delay': expected KEY=VALUE"),
        ("office.toml --link satellite --set x=y", "--set x=y: unknown key; known here: name"),
        ("geo-splt --gateway hub", "geo-splt: no such file; did you mean the ready-made scenario"),
        ("nosuch --gateway hub", "nosuch: no such file, and no ready-made scenario either (broad"),
        (". --gateway hub", ". is a folder; expected a scenario file"),
        (
            "geo-bit-errors --gateway hub",
            "geo-bit-errors is a sweep file, which `bentpipe sweep geo-bit-errors` simulates",
        ),
        (
            f'office.toml --gateway hub {SIDES} --set gateways.hub.only.addresses=["10.0.0.1/8"]',
            '--set gateways.hub.only.addresses=["10.0.0.1/8"]: expected an address or a prefix',
        ),
        (
            f"office.toml --gateway hub {SIDES} --set gateways.hub.except.addresses_file=none.txt",
            "--set gateways.hub.except.addresses_file=none.txt: none.txt: no such file",
        ),
        (
            f"office.toml --gateway hub {SIDES} --set gateways.hub.only.addresses=[]",
            "--set gateways.hub.only.addresses=[]: has no effect: no addresses stand in it",
        ),
        ("connections --limit 1001", "Invalid value for '--limit': expected a whole number from 1"),
        ("status office.toml", "Got unexpected extra argument(s) (office.toml)"),
        ("drain --within soon", '--within soon: expected a time such as "60 s"'),
        # A word behind an option is its value.
        ("nosuch.toml --gateway --shape", "nosuch.toml: no such file"),
        # The last one counts.
        (f"office.toml --gateway hup --gateway hop {SIDES}", 'no gateway is "hop"'),
    ],
)
def test_mistakes_in_the_command_line_are_named(line: str, expected: str, run: Run) -> None:
    said = run(*line.split())
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"bentpipe: {expected}"), said.err
    assert said.err.count("\n") == 1


@pytest.mark.usefixtures("office")
def test_words_that_are_not_utf8_are_refused(run: Run) -> None:
    said = run("office.toml", "--gateway", b"h\xff")
    assert (said.status, said.err) == (2, "bentpipe: --gateway h\\udcff: not UTF-8 text\n")
    said = run(b"\xff.toml", "--gateway", "hub")
    assert said.status == 2
    assert said.err.endswith(".toml: no such file\n")


@pytest.mark.usefixtures("office")
def test_ready_made_scenarios_are_found_by_name(run: Run) -> None:
    words = ("--gateway", "hub", "--interface", "backbone=lo", "--interface", "satellite=nosuch0")
    said = run("geo-split", *words)
    assert said.err.startswith('bentpipe: no interface is "nosuch0"'), said.err
    # A file of that name comes first.
    Path("office.toml").rename("geo-split")
    assert 'no link of "hub" is "backbone"' in run("geo-split", *words).err


@pytest.mark.usefixtures("office")
@pytest.mark.parametrize("words", [("--check",), ("check",)], ids=["option", "subcommand"])
def test_check_refuses_what_a_run_refuses(run: Run, words: tuple[str, ...]) -> None:
    line = ["office.toml", "--link", "satellite", "--interface", "hub=lo"]
    line += ["--interface", "terminal=nosuch0"]
    line = [*words, *line] if words == ("check",) else [*line, *words]
    said = run(*line)
    assert said.status == 2
    assert said.err.startswith('bentpipe: no interface is "nosuch0"')


def test_no_gateway_answers(run: Run, tmp_path: Path) -> None:
    said = run("status", "--socket", str(tmp_path / "none"))
    assert (said.status, said.out) == (1, "")
    assert said.err == (
        f"bentpipe: {tmp_path}/none: no such file or directory: expected the control socket of a "
        "gateway that runs (--socket)\n"
    )


@pytest.mark.usefixtures("office")
def test_addresses_have_no_effect_on_simulated_hosts() -> None:
    Path("list.txt").write_text("0.0.0.0/0\n::/0\n")
    for key in (None, "except", "only"):
        settings = {f"gateways.hub.{key}.addresses_file": "list.txt"} if key else {}
        summary = json.loads(bentpipe.run("office.toml", settings=settings).summary_json)
        assert summary["gateways"][0]["connections"]["split"] == 1, key


@pytest.mark.parametrize("words", [("--help",), ("-h",), ("check", "--help")], ids=" ".join)
def test_help_names_every_option(run: Run, words: tuple[str, ...]) -> None:
    said = run(*words)
    assert (said.status, said.err) == (0, "")
    for _, option, _, description, _ in _native.gateway_parameters():
        assert option in said.out
        assert " ".join(description.split()[:3]) in said.out
    assert "--interface" in said.out


def test_version_is_printed(run: Run) -> None:
    said = run("--version")
    assert (said.status, said.out) == (0, f"bentpipe-gateway {_native.__version__}\n")


def test_parameters_for_completion_are_the_programs() -> None:
    parameters = COMMANDS["gateway"].parameters
    options = [each.option for each in parameters.values() if each.option]
    assert options[:4] == ["--gateway", "--link", "--interface", "--shape"]
    assert parameters["interface"].many
    assert parameters["check"].kind is bool
    assert parameters["file"].complete == "scenarios"


@pytest.mark.skipif(not GATEWAY_PROGRAM.exists(), reason=UNBUILT)
def test_program_embeds_every_ready_made_scenario_and_example() -> None:
    files = {**ready_made(), **examples()}
    for name in (name for name, path in files.items() if path.suffix == ".toml"):
        done = subprocess.run(
            [GATEWAY_PROGRAM, name, "--gateway", "nosuch"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "no such file" not in done.stderr, name


@pytest.mark.usefixtures("office")
def test_scenario_is_read_from_standard_input() -> None:
    for command in ([sys.executable, "-m", "bentpipe", "gateway"], [str(GATEWAY_PROGRAM)]):
        if not Path(command[0]).exists():
            continue
        with Path("office.toml").open("rb") as file:
            done = subprocess.run(
                [*command, "-", "--gateway", "hup", *SIDES.split()],
                stdin=file,
                capture_output=True,
                text=True,
                check=False,
            )
        assert done.returncode == 2
        assert done.stderr == 'bentpipe: no gateway is "hup"; did you mean "hub"?\n'


def test_bentpipe_gateway_runs_the_gateway_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bentpipe-gateway", "--help"])
    with pytest.raises(SystemExit) as ended:
        start.gateway_main()
    assert ended.value.code == 0
    assert "--shape" in capsys.readouterr().out
