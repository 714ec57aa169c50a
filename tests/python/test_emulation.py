"""Scenarios in real time: between the kernel's TCP connections, and a user's own programs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe import _native, congestion, toml
from bentpipe.cli import execute
from bentpipe.cli.emulate import _commands
from bentpipe.comparison import compare
from bentpipe.emulation import Command
from bentpipe.errors import RequestError, WorkError
from bentpipe.scenario import Scenario

from .commands import started
from .live import OBSTACLE, live, repeated_after_stall
from .networks import short


@live
def test_kernel_transfer_matches_the_simulation() -> None:
    comparison = compare(Scenario.of(short()))
    real = comparison.emulated.flow()
    assert (real.outcome, real.bytes_delivered) == ("finished", 1_000_000)
    # Nothing is random here: what docs/emulation.md allows.
    (difference,) = comparison.differences.values()
    assert difference.transfer_time is not None
    assert abs(difference.transfer_time) < 0.05
    data = comparison.to_data()
    assert data.keys() == {"predict", "run", "range", "emulate", "difference", "groups"}
    assert data["emulate"]["late_ms"].keys() == {"mean", "p99", "p999", "max"}
    simulated = data["run"]["flows"][0].keys() - {"limited_s", "path_mtu", "control_timeouts"}
    assert simulated <= data["emulate"]["flows"][0].keys()


@live
@pytest.mark.parametrize("ours", [["server"], ["client"], ["server", "client"]])
def test_attached_tcp_matches_the_simulation(ours: list[str]) -> None:
    settings = {"hosts.server.tcp.profile": "linux", "hosts.client.tcp.profile": "linux"}
    scenario = Scenario.of(short()).with_settings(settings)
    simulated = bentpipe.run(scenario).flow()
    result = bentpipe.emulate(scenario, attach=dict.fromkeys(ours, "our"))
    flow = result.flow()
    assert (flow.outcome, flow.bytes_delivered) == ("finished", 1_000_000)
    assert not any("differs from the one that was sent" in note for note in result.notes)
    assert flow.finish_s == pytest.approx(simulated.finish_s, rel=0.05)
    (data,) = json.loads(result.summary_json)["flows"]
    if "server" in ours:
        # Of our own sender, all is known that is known of a simulated one.
        (of_run,) = json.loads(bentpipe.run(scenario).summary_json)["flows"]
        assert data.keys() >= of_run.keys()
        assert data["segments_sent"] >= 1_000_000 // 1448
        assert data["limited_s"].keys() == of_run["limited_s"].keys()
        assert data["rtt_ms"]["min"] >= 50
    window = result.series["download.congestion_window"].values
    assert len(window) > 10
    assert max(window) > 10 * 1448


@live
@pytest.mark.parametrize("attach", [{}, {"client": "our"}])
def test_delivered_bytes_are_reported_while_it_runs(attach: dict[str, str]) -> None:
    reports: list[tuple[float, int]] = []

    def note(elapsed_s: float, flows: list[tuple[str, int]]) -> None:
        ((name, count),) = flows
        assert name == "download"
        reports.append((elapsed_s, count))

    result = bentpipe.emulate(Scenario.of(short()), delivered=note, attach=attach)
    assert result.flow().bytes_delivered == 1_000_000
    counts = [count for _, count in reports]
    assert counts == sorted(counts)
    # Some are of the middle of the transfer, and none is of more than was sent.
    assert len({count for count in counts if 0 < count < 1_000_000}) > 3
    assert counts[-1] <= 1_000_000


@live
def test_live_reports_are_lines_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "short.toml"
    file.write_text(toml.document(short()))
    assert execute(["emulate", str(file), "--json", "--live"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["flows"][0]["bytes_delivered"] == 1_000_000
    reports = [json.loads(line) for line in said.err.splitlines() if line.startswith("{")]
    assert len(reports) > 2
    times = [report["elapsed_s"] for report in reports]
    # A few a second.
    assert all(later - earlier >= 0.25 for earlier, later in pairwise(times))
    assert reports[-1]["delivered_bytes"]["download"] > 0


@live
def test_attached_host_answers_pings_and_refuses_commands() -> None:
    ping = """
import socket, sys
request = bytes([8, 0, 0xe5, 0xca, 0x12, 0x34, 0, 1, 0, 0])
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
raw.settimeout(5)
raw.sendto(request, ("client", 0))
answer = raw.recv(100)[20:]
sys.exit(answer != bytes([0, 0, 0xed, 0xca]) + request[4:])
"""

    def command(host: str) -> list[Command]:
        return [Command(host=host, words=(sys.executable, "-c", ping), waited_for=True)]

    attach = {"client": "our"}
    result = bentpipe.emulate(short(), commands=command("server"), attach=attach)
    assert result.status == 0
    with pytest.raises(bentpipe.ScenarioError, match="no host with the kernel's TCP"):
        bentpipe.emulate(short(), commands=command("client"), attach=attach)
    with pytest.raises(RequestError, match="expected our or kernel"):
        bentpipe.emulate(short(), attach={"client": "mine"})
    with pytest.raises(bentpipe.ScenarioError, match="no host is"):
        bentpipe.emulate(short(), attach={"nobody": "our"})


@live
def test_emulated_links_count_every_packet_and_write_probes(tmp_path: Path) -> None:
    capture = tmp_path / "satellite.pcapng"
    result = bentpipe.emulate(
        short(),
        settings={"links.satellite.forward.errors.packet_loss_rate": 0.02},
        pcap=[("satellite", capture)],
    )
    flow, (forward, back) = result.flow(), result.summary.links
    assert flow.outcome == "finished"
    assert forward.packets_lost > 0
    assert flow.segments_retransmitted >= forward.packets_lost // 2
    sent = forward.packets_delivered + forward.packets_lost + forward.packets_dropped
    assert sent >= flow.segments_sent > 1_000_000 / 1448
    assert back.packets_delivered > 0
    window = result.series["download.congestion_window"]
    assert len(window.times_s) > 5
    assert window.values.max() >= 10 * 1448
    delivered = result.series["download.delivered"].values
    assert delivered[-1] == 1_000_000
    assert capture.stat().st_size > 1_000_000


@live
def test_emulated_gateways_and_return_links_match_the_simulation() -> None:
    scenario = short(
        hosts={"server": {}, "client": {}},
        gateways={"hub": {"kind": "router"}},
        links={
            "lan": {"between": ["server", "hub"], "rate": "50 Mbit/s", "delay": "1 ms"},
            "satellite": {
                "between": ["hub", "client"],
                "forward": {"rate": "8 Mbit/s", "delay": "20 ms"},
                "return": {
                    "rate": "64 kbit/s",
                    "delay": "20 ms",
                    "acks": {"kind": "filter"},
                    "compression": "rfc1144",
                },
            },
        },
    )
    result = bentpipe.emulate(scenario)
    assert result.flow().outcome == "finished"
    back = next(link for link in result.summary.links if link.name == "satellite.return")
    assert back.counters is not None
    assert back.count("headers_ip") + back.count("headers_uncompressed") > 0


@live
def test_split_gateways_relay_kernel_connections() -> None:
    """The hosts cannot tell: what arrives is what was sent, as fast as simulated."""
    comparison = compare(Scenario.find("geo-split").with_settings({"duration": "6 s"}))
    assert not [note for note in comparison.emulated.notes if note.startswith("flows.")]
    hub = comparison.emulated.summary.gateways[0]
    assert hub.name == "hub"
    assert hub.extra["packets"]["split"] > 1000
    assert comparison.emulated.flow().bytes_delivered > 1_000_000
    difference = comparison.differences["download"].goodput
    assert difference is not None
    assert abs(difference) < 0.05


@live
def test_unsupported_kernel_settings_are_noted_by_key() -> None:
    tcp = {"mss": "1000 B", "initial_rto": "3 s"}
    scenario = short(duration="1 s", hosts={"server": {"tcp": tcp}, "client": {}})
    notes = bentpipe.emulate(scenario).notes
    keys = [note.partition(":")[0] for note in notes if note.startswith("hosts.")]
    assert keys == ["hosts.server.tcp.initial_rto"]


def _kernel_has(control: str) -> bool:
    with socket.socket() as end:
        try:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        except OSError:
            return False
    return True


@live
@pytest.mark.skipif(_kernel_has("bbr3"), reason="optional: the kernel has it")
def test_missing_kernel_congestion_control_is_refused() -> None:
    server = {"tcp": {"congestion_control": "bbr3"}}
    scenario = short(hosts={"server": server, "client": {}})
    with pytest.raises(_native.ScenarioError, match=r"the kernel has no \"bbr3\"; it has .*reno"):
        bentpipe.emulate(scenario)


@live
def test_failing_window_rule_ends_an_emulation_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(congestion, "_classes", {})

    @bentpipe.congestion_control("failing")
    class Failing:
        def on_ack(self, *_: object) -> None:
            raise ValueError("no window")

        on_congestion = on_ack

    server = {"tcp": {"congestion_control": "failing"}}
    scenario = short(duration="60 s", hosts={"server": server, "client": {}})
    begun = time.monotonic()
    with pytest.raises(_native.RunError, match="no window"):
        bentpipe.emulate(scenario, attach={"server": "our"})
    assert time.monotonic() - begun < 30


@live
def test_user_programs_communicate_over_the_emulated_links(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "short.toml"
    file.write_text(
        'name = "short"\nduration = "4 s"\nhosts = { server = {}, client = {} }\n'
        'links.l = { between = ["server", "client"], rate = "8 Mbit/s", delay = "100 ms" }\n'
        'flows.f = { from = "server", to = "client", app = { kind = "bulk" } }\n',
        encoding="utf-8",
    )
    program = (
        "import socket, time\n"
        "began = time.monotonic()\n"
        "while True:\n"
        "    try: s = socket.create_connection(('server', 7000), timeout=5); break\n"
        "    except ConnectionRefusedError: time.sleep(0.05)\n"
        "began = time.monotonic(); s.sendall(b'x'); assert s.recv(1) == b'y'\n"
        "print('round trip', round(time.monotonic() - began, 3))\n"
        "raise SystemExit(7)\n"
    )
    server = (
        "import socket; l = socket.create_server(('', 7000)); c, _ = l.accept(); c.recv(1); "
        "c.sendall(b'y'); c.recv(1)"
    )
    arguments = ["emulate", str(file), "--serve", f'server={sys.executable} -c "{server}"']
    status = execute([*arguments, "--", sys.executable, "-c", program])
    out = capfd.readouterr().out
    assert status == 7, out
    words = out.split()
    assert words[:2] == ["round", "trip"]
    assert 0.2 <= float(words[2]) < 0.4


def _emulation_processes() -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"\0BENTPIPE_EMULATION=" in b"\0" + environment:
                found.add(int(entry.name))
    return found


@live
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_killed_emulation_leaves_no_processes_or_namespaces(
    tmp_path: Path, how: signal.Signals
) -> None:
    file = tmp_path / "short.json"
    program = (
        "import bentpipe, json, sys\nfrom bentpipe.emulation import Command\n"
        f"bentpipe.emulate(json.load(open({str(file)!r})), "
        "commands=[Command(host='client', words=('sleep', '77'), waited_for=True)])\n"
    )
    file.write_text(json.dumps(short()), encoding="utf-8")
    before = _emulation_processes()
    emulator = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 20
    while not (started := _emulation_processes() - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert started, "the command runs"
    emulator.send_signal(how)
    emulator.wait(timeout=20)
    _native.emulation_leftovers()
    deadline = time.monotonic() + 10
    while _emulation_processes() & started and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _emulation_processes() & started
    hosts = Path(os.environ.get("TMPDIR", "/tmp")).glob(f"bentpipe-{emulator.pid}-*.hosts")
    assert not list(hosts)


def _has_device(process: subprocess.Popen[str]) -> bool:
    for each in Path(f"/proc/{process.pid}/fd").iterdir():
        # A descriptor may have been closed meanwhile.
        with suppress(FileNotFoundError):
            if each.readlink() == Path("/dev/net/tun"):
                return True
    return False


@live
@pytest.mark.parametrize(
    ("number", "status", "told"),
    [(signal.SIGTERM, 143, "ended by SIGTERM"), (signal.SIGHUP, 129, "ended by SIGHUP")],
)
@pytest.mark.parametrize("command", [(), ("--", "sleep", "77")])
def test_signal_ends_emulate_with_its_exit_status(
    number: signal.Signals, status: int, told: str, command: tuple[str, ...]
) -> None:
    words = [sys.executable, "-m", "bentpipe", "emulate", "t1-satellite", *command]
    with started(words) as process:
        deadline = time.monotonic() + 20
        while not _has_device(process):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        out, said = process.communicate(timeout=20)
    assert (process.returncode, out) == (status, "")
    assert said.splitlines()[-1] == f"bentpipe: {told}"


LONG = {
    "download": {"from": "server", "to": "client", "app": {"kind": "bulk", "size": "50 MB"}},
}


@live
def test_concurrent_emulations_are_independent() -> None:
    program = (
        "import bentpipe, json, signal, sys\n"
        # Ignored where the tests run in the background of a shell, and inherited.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "result = bentpipe.emulate(json.loads(sys.argv[1]))\n"
        "print(result.summary_json)\n"
    )

    def start(scenario: dict[str, Any]) -> subprocess.Popen[str]:
        arguments = [sys.executable, "-c", program, json.dumps(scenario)]
        pipe = subprocess.PIPE
        return subprocess.Popen(arguments, stdout=pipe, stderr=pipe, text=True)

    # One that is not through before the other has begun.
    ends, stays = start(short(duration="1 min", flows=LONG)), start(short())
    deadline = time.monotonic() + 20
    while not (_has_device(ends) and _has_device(stays)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    ends.send_signal(signal.SIGINT)
    out, errors = ends.communicate(timeout=20)
    assert (out, ends.returncode) == ("", -signal.SIGINT)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    out, _ = stays.communicate(timeout=20)
    (flow,) = json.loads(out)["flows"]
    assert (flow["outcome"], flow["bytes_delivered"]) == ("finished", 1_000_000)


def test_invalid_emulate_requests_print_one_line() -> None:
    resolved = Scenario.of(short()).resolved()
    with pytest.raises(RequestError, match="no host is 'nobody'; known: server, client"):
        _commands(resolved, command=(), shell="nobody", serve=())
    with pytest.raises(RequestError, match="expected HOST=COMMAND"):
        _commands(resolved, command=(), shell=None, serve=("server",))
    with pytest.raises(RequestError, match="nothing to wait for"):
        _commands(resolved, command=(), shell=None, serve=("server=true",))


@pytest.mark.skipif(OBSTACLE is None, reason="optional: emulation works here")
def test_missing_privileges_are_reported_in_one_line() -> None:
    with pytest.raises(WorkError, match="nothing can be emulated here"):
        bentpipe.emulate(short())


@live
@repeated_after_stall
def test_enhanced_hybla_estimates_the_capacity_of_a_real_path() -> None:
    """vanzara2014, section V, leaves the test over a real path to future work."""
    estimated = {"hybla.channel_capacity": "packet-pairs"}
    estimated["hybla.initial_threshold"] = "bandwidth-estimate"
    told = {"channel_capacity": "20 Mbit/s"}
    goodputs = []
    for tcp in (estimated, told):
        scenario = _lossy_satellite().with_settings(
            {f"hosts.server.tcp.{key}": value for key, value in tcp.items()}
        )
        simulated = bentpipe.run(scenario).flow().bytes_delivered
        emulated = bentpipe.emulate(scenario, attach={"server": "our"}).flow().bytes_delivered
        # The kernel's clock spaces packets and acknowledgments less evenly than the simulator.
        assert emulated == pytest.approx(simulated, rel=0.2)
        goodputs.append(emulated)
    # Nothing is gained by knowing the capacity.
    assert goodputs[0] > 0.85 * goodputs[1]


def _lossy_satellite() -> Scenario:
    tcp = {
        "congestion_control": "enhanced-hybla",
        "hybla": {"channel_capacity": "packet-pairs"},
        "send_buffer": "16 MiB",
        "proportional_rate_reduction": False,
    }
    link = {
        "between": ["server", "client"],
        "rate": "20 Mbit/s",
        "delay": "150 ms",
        "forward": {"errors": {"packet_loss_rate": 0.01}},
    }
    return Scenario.of(
        {
            "name": "lossy-satellite",
            "duration": "10 s",
            "hosts": {"server": {"tcp": tcp}, "client": {"tcp": {"receive_buffer": "16 MiB"}}},
            "links": {"satellite": link},
            "flows": {"download": {"from": "server", "to": "client", "app": {"kind": "bulk"}}},
        }
    )
