"""Window rules as BPF programs in this machine's kernel."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe import _native, congestion
from bentpipe.errors import RequestError, WorkError
from bentpipe.kernel_rules import RULES, RuleSettings, find_rule, loaded, obstacle
from bentpipe.kernel_rules.loading import available
from bentpipe.kernel_rules.rules import compiled, renamed

from .conftest import load_script
from .live import live, repeated_after_stall
from .networks import short

ROOT = Path(__file__).resolve().parents[2]
GENTLE = ROOT / "examples" / "gentle.bpf.c"
CAPACITY = RuleSettings(channel_capacity_bps=20e6)

# Tests of the real kernel; the others need neither privileges nor clang.
kernel = pytest.mark.kernel
MISSING = obstacle() or next(
    (f"{name} is missing" for name in ("clang", "bpftool", "unshare") if not shutil.which(name)),
    None,
)


def bpf_objects() -> dict[str, list[str]]:
    """Return the names of all rules, and of all programs and maps that belong to rules."""
    names = {}
    for kind in ("prog", "map"):
        listed = subprocess.run(
            ["bpftool", "--json", kind, "list"], capture_output=True, check=True, text=True
        )
        found = [each for each in json.loads(listed.stdout) if each["type"] == "struct_ops"]
        names[kind] = sorted(each["name"] for each in found)
    return {**names, "rules": sorted(available())}


@pytest.fixture
def nothing_leaks() -> Iterator[None]:
    """Check that the kernel has the same rules, programs and maps as before."""
    if MISSING is not None:
        pytest.skip(MISSING)
    before = bpf_objects()
    yield
    for _ in range(100):
        # The kernel frees programs after a grace period.
        if (after := bpf_objects()) == before:
            return
        time.sleep(0.1)
    assert after == before


def isolated(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in mount and network namespaces of its own, with routes and /sys/fs/bpf.

    Names of rules are the machine's.
    """
    prepare = """
set -e
mount -t bpf bpf /sys/fs/bpf
mount -t tmpfs none /run
ip link set lo up
ip tuntap add device0 mode tun
ip address add 192.0.2.2/24 dev device0
ip link set device0 up
ip route add default via 192.0.2.1
ip route add 203.0.113.0/24 via 192.0.2.9 metric 50 mtu 1400
set +e
bentpipe() { "$PYTHON" -m bentpipe "$@"; echo "status $?"; }
"""
    return subprocess.run(
        ["unshare", "--mount", "--net", "bash", "-c", prepare + script],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "PYTHON": sys.executable, **environment},
    )


@kernel
@pytest.mark.usefixtures("nothing_leaks")
@pytest.mark.parametrize("name", RULES)
def test_rule_is_there_for_the_block(name: str) -> None:
    with loaded(RULES[name], CAPACITY) as kernel_name, socket.socket() as one:
        assert kernel_name in available()
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, kernel_name.encode())
        chosen = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        assert chosen.rstrip(b"\0").decode() == kernel_name
    assert kernel_name not in available()


@kernel
@pytest.mark.usefixtures("nothing_leaks")
def test_load_status_and_unload_with_a_route() -> None:
    done = isolated(
        """
ip route > /tmp/before-$$
bentpipe kernel load hybla --route 198.51.100.0/24 --initial-threshold 100
bentpipe kernel load enhanced-hybla --capacity 20Mbit/s --route 203.0.113.0/24
bentpipe kernel load hybla
ip route
bentpipe kernel status
bentpipe kernel unload hybla
bentpipe kernel unload enhanced-hybla
ip route | diff /tmp/before-$$ - && echo same routes
rm /tmp/before-$$
bentpipe kernel status
ls -d /sys/fs/bpf/bentpipe
ls -A /run
"""
    )
    out = done.stdout
    assert "loaded hybla on the route 198.51.100.0/24\nstatus 0" in out
    assert re.search(r"198\.51\.100\.0/24 via 192\.0\.2\.1 .*congctl hybla", out)
    # The route's other attributes stay.
    assert re.search(r"203\.0\.113\.0/24 .*metric 50 .*mtu 1400 congctl enhanced_hybla", out)
    assert re.search(r"^hybla +0 +198\.51\.100\.0/24$", out, re.MULTILINE)
    assert "unloaded hybla; restored the route 198.51.100.0/24" in out
    assert out.endswith("same routes\nno rule is loaded by bentpipe\nstatus 0\n")
    assert done.stderr.splitlines() == [
        "bentpipe: hybla: loaded already; bentpipe kernel unload hybla removes it",
        "ls: cannot access '/sys/fs/bpf/bentpipe': No such file or directory",
    ]


@kernel
@pytest.mark.usefixtures("nothing_leaks")
def test_route_selects_the_rule_and_connections_keep_it_when_it_is_unloaded() -> None:
    program = """
import socket, subprocess, sys
bentpipe = [sys.executable, "-m", "bentpipe", "kernel"]
def opened():
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex(("198.51.100.5", 80))
    return one
def congestion(one):
    name = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.partition(bytes(1))[0].decode()
three = [opened() for _ in range(3)]
print([congestion(each) for each in three])
for words in (["status"], ["unload", "hybla"]):
    subprocess.run([*bentpipe, *words])
print(congestion(three[0]), congestion(opened()))
"""
    done = isolated(
        """
bentpipe kernel load hybla --route 198.51.100.0/24
"$PYTHON" -c "$PROGRAM"
""",
        PROGRAM=program,
    )
    assert "['hybla', 'hybla', 'hybla']" in done.stdout
    users = re.search(r"^hybla +(\d+) +198\.51\.100\.0/24$", done.stdout, re.MULTILINE)
    assert users is not None
    assert int(users[1]) >= 3
    unloaded = "unloaded hybla; restored the route 198.51.100.0/24; connections that keep it until"
    assert f"{unloaded} they end: {users[1]}\n" in done.stdout
    assert re.search(r"^hybla (?!hybla)\w+$", done.stdout, re.MULTILINE)


@kernel
@pytest.mark.usefixtures("nothing_leaks")
def test_killed_loader_leaves_nothing() -> None:
    program = (
        "import time; from bentpipe.kernel_rules import *\n"
        "with loaded(RULES['westwood'], RuleSettings()) as name:\n"
        "    print(name, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        name = run.stdout.readline().strip()
        assert name in available()
        run.send_signal(signal.SIGKILL)
    assert name not in available()


@kernel
@pytest.mark.usefixtures("nothing_leaks")
def test_foreign_rule_of_the_same_name_is_left_alone(tmp_path: Path) -> None:
    object_file = tmp_path / "foreign.o"
    object_file.write_bytes(renamed(compiled(GENTLE), "gentle", "hybla"))
    done = isolated(
        """
bpftool struct_ops register "$OBJECT" > /dev/null 2>&1
bentpipe kernel load hybla
bentpipe kernel unload hybla
bentpipe kernel status
bpftool struct_ops unregister name gentle > /dev/null 2>&1
""",
        OBJECT=str(object_file),
    )
    assert done.stderr == (
        "bentpipe: hybla: the kernel has a rule of this name that bentpipe has not loaded\n"
        "bentpipe: hybla: not loaded by bentpipe kernel load\n"
    )
    statuses = re.findall(r"^status (\d)$", done.stdout, re.MULTILINE)
    assert statuses == ["1", "2", "0"]


@kernel
@pytest.mark.usefixtures("nothing_leaks")
def test_missing_requirements_are_one_line_each() -> None:
    nobody = "setpriv --reuid 65534 --clear-groups --bounding-set -all --inh-caps -all"
    done = isolated(
        f"""
{nobody} "$PYTHON" -m bentpipe kernel load hybla
{nobody} "$PYTHON" -m bentpipe kernel unload hybla
umount /sys/fs/bpf
bentpipe kernel load hybla
mkdir -p /run/empty
mount --bind /run/empty /sys/kernel/btf
bentpipe kernel load hybla
bentpipe kernel check > /dev/null
"""
    )
    assert done.stderr.splitlines() == [
        "bentpipe: missing privileges (CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF): run as root",
        "bentpipe: hybla: not loaded",
        "bentpipe: /sys/fs/bpf is not mounted: mount -t bpf bpf /sys/fs/bpf",
        "bentpipe: this kernel has no BTF (/sys/kernel/btf/vmlinux): CONFIG_DEBUG_INFO_BTF is off",
    ]
    assert re.findall(r"^status (\d)$", done.stdout, re.MULTILINE) == ["1", "1"]


@kernel
@pytest.mark.usefixtures("nothing_leaks")
def test_mistakes_in_own_rules_are_one_line(tmp_path: Path) -> None:
    source = GENTLE.read_text("utf-8")
    for name, old, new, message in (
        (
            "syntax",
            "larger_window(",
            "largest_window(",
            r"mine\.bpf\.c does not compile: .*largest",
        ),
        ("verifier", "*credit = 0;", "credit[40] = 0;", r"the kernel refuses the program: .+"),
        ("members", ".ssthresh = (void *)gentle_ssthresh,", "", r"no callback of window rules"),
    ):
        assert old in source, name
        mine = tmp_path / "mine.bpf.c"
        mine.write_text(source.replace(old, new).replace("gentle", "mine"), "utf-8")
        with pytest.raises(WorkError, match=message), loaded(find_rule(str(mine)), RuleSettings()):
            pass


@kernel
@live
@pytest.mark.usefixtures("nothing_leaks")
def test_own_rule_in_c_is_that_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(congestion, "_classes", {})
    load_script(ROOT / "examples" / "congestion_control.py")
    tcp = {"congestion_control": "gentle", "profile": "linux"}
    scenario = short(
        hosts={"server": {"tcp": tcp}, "client": {"tcp": {"profile": "linux"}}},
        duration="10 s",
    )
    queue = {"kind": "drop-tail", "limit": "40 packets"}
    scenario["links"]["satellite"]["queue"] = queue
    del scenario["flows"]["download"]["app"]["size"]
    with loaded(find_rule(str(GENTLE)), RuleSettings(), name="gentle"):
        real = bentpipe.emulate(scenario).flow()
    simulated = bentpipe.run(scenario).flow()
    assert real.segments_retransmitted > 0
    assert simulated.goodput_bps == pytest.approx(real.goodput_bps, rel=0.03)


def test_documented_rule_is_the_example() -> None:
    page = (ROOT / "docs" / "kernel.md").read_text("utf-8")
    (block,) = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    example = GENTLE.read_text("utf-8")
    assert (
        block.partition("\n")[2]
        == example.partition("#include")[1] + example.partition("#include")[2]
    )


@kernel
@live
@pytest.mark.usefixtures("nothing_leaks")
def test_emulation_loads_the_rule_of_each_host() -> None:
    server = {
        "profile": "linux",
        "congestion_control": "enhanced-hybla",
        "channel_capacity": "8 Mbit/s",
        "initial_slow_start_threshold": "40 segments",
    }
    client = {
        "profile": "linux",
        "congestion_control": "westwood",
        "bandwidth_filter": "last-sample",
    }
    result = bentpipe.emulate(short(hosts={"server": {"tcp": server}, "client": {"tcp": client}}))
    assert result.flow().outcome == "finished"
    assert result.notes == (
        "hosts.client.tcp.bandwidth_filter: no effect, the kernel has no such setting",
    )


@kernel
@live
@pytest.mark.usefixtures("nothing_leaks")
def test_emulation_without_privileges_names_what_is_missing() -> None:
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount", sys.executable, "-m", "bentpipe"),
            *("emulate", "geo-consumer", "--set", "hosts.server.tcp.congestion_control=hybla"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert re.search(
        r'hosts\.server\.tcp\.congestion_control: the kernel has no "hybla"; it has .*; '
        r"missing privileges \(root outside of user namespaces\): run as root$",
        line,
    )


@kernel
@live
@pytest.mark.usefixtures("nothing_leaks")
@pytest.mark.parametrize("rule", ["hybla", "enhanced-hybla", "westwood"])
@repeated_after_stall
def test_kernel_agrees_with_the_simulation(rule: str) -> None:
    cells = load_script(ROOT / "benches" / "witness" / "kernel_rules.py")
    queue = 2.0 if rule == "westwood" else 0.5
    cell = cells.Cell(
        rule=rule, rate_mbps=20, round_trip_ms=560, queue=queue, loss=0.0, duration_s=12
    )
    measured = cells.measure(cell, 1)
    assert not measured["too_late"]
    assert measured["simulated_bps"] == pytest.approx(
        measured["emulated_bps"], rel=cells.BOUNDS[False]
    )
    assert min(measured["retransmitted"]) > 0


@pytest.mark.slow
def test_recorded_kernel_agrees_with_the_simulation() -> None:
    cells = load_script(ROOT / "benches" / "witness" / "kernel_rules.py")
    record = {
        tuple(each["cell"]): each["kernel_bps"] for each in json.loads(cells.RECORD.read_text())
    }
    assert len(record) == 24
    beyond = []
    for cell in cells.cells():
        kernel_bps = record[tuple(cells.key(cell))]
        assert len(kernel_bps) == len(cell.seeds)
        seeds = cell.seeds if cell.loss else cell.seeds[:1]
        network = cells.scenario(cell)
        ours = [bentpipe.run(network, seed=seed).flow().goodput_bps for seed in seeds]
        share = cells.middle(cell, ours) / cells.middle(cell, kernel_bps) - 1
        if abs(share) > cells.BOUNDS[bool(cell.loss)]:
            beyond.append(tuple(cells.key(cell)))
    assert beyond == list(cells.BEYOND)


def test_settings_of_a_host_are_those_of_the_scenario() -> None:
    tcp: dict[str, Any] = {
        "hybla": {"reference_rtt_s": 0.03},
        "westwood": {"time_constant_s": 0.2},
        "channel_capacity_bps": 8_000_000,
        "initial_slow_start_threshold_bytes": 14_480,
        "mss_bytes": 1448,
    }
    enhanced = RuleSettings.of_host(RULES["enhanced-hybla"], tcp).packed()
    words = [int.from_bytes(enhanced[n : n + 8], sys.byteorder) for n in range(0, 32, 8)]
    assert words == [30_000, 1_000_000, 200_000, 10]
    assert RuleSettings.of_host(RULES["hybla"], tcp).channel_capacity_bps is None
    assert RuleSettings().packed() == bytes(32)


def test_renamed_object_has_the_name_once() -> None:
    field = b"hybla".ljust(16, b"\0")
    assert renamed(b"1" + field + b"2", "hybla", "other") == b"1other" + bytes(11) + b"2"
    for twice_or_never in (field + field, b""):
        with pytest.raises(WorkError, match="does not contain"):
            renamed(twice_or_never, "hybla", "other")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lode"], "lode: expected list, check, load, unload or status"),
        (["load"], "the name of a rule is missing"),
        (["load", "nosuch"], "no rule for the kernel is 'nosuch'; expected hybla"),
        (["load", "no.bpf.c"], "no.bpf.c: no such file"),
        (["load", "enhanced-hybla", "--capacity", "20"], "--capacity 20: expected a value such as"),
        (["load", "hybla", "--rtt0", "1us"], "--rtt0 1us: out of range"),
        (["status", "--route", "default"], "--route: only with kernel load"),
    ],
)
def test_wrong_requests_are_one_line(bentpipe: Any, words: list[str], message: str) -> None:
    done = bentpipe("kernel", *words)
    assert done.status == 2
    assert done.err.startswith("bentpipe: ")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_unit_runs_the_same_command(bentpipe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["kernel", "load", "hybla", "--route", "default", "--unit"]
    monkeypatch.setattr(sys, "argv", ["bentpipe", *words])
    done = bentpipe(*words)
    start = f"ExecStart={sys.executable} -m bentpipe kernel load hybla --route default\n"
    assert start in done.out
    assert f"ExecStop={sys.executable} -m bentpipe kernel unload hybla\n" in done.out
    monkeypatch.chdir(ROOT)
    words[2] = "examples/gentle.bpf.c"
    monkeypatch.setattr(sys, "argv", ["bentpipe", *words])
    assert f"kernel load {GENTLE} --route default\n" in bentpipe(*words).out


def test_rules_of_the_kernel_are_rules_of_the_simulator() -> None:
    known = _native.lists()["congestion-controls"]
    assert set(RULES) <= set(known)
    for rule in RULES.values():
        assert rule.source is not None
        assert len(rule.kernel_name) <= 15
    with pytest.raises(RequestError, match="expected hybla"):
        find_rule("reno")
