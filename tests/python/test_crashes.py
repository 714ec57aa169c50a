"""Gateways that die and begin anew: simulated, and live between the kernel's own programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import bentpipe
from bentpipe.emulation import Command

from .live import live

# Of an end: what it heard, when, and how many bytes it had sent or got until then, and of them in
# the last three seconds; of the receiver also whether they were the right ones. Then one more
# connection, through the gateway that has begun anew.
END = """
import errno, json, os, socket, sys, time

folder, role, chain = sys.argv[1], sys.argv[2], sys.argv[3]

def connect(port):
    deadline = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection((f"server-{chain}", port), timeout=20)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)

def tell(name, told):
    with open(f"{folder}/{name}.new", "w") as file:
        json.dump(told, file)
    os.rename(f"{folder}/{name}.new", f"{folder}/{name}.json")

if role == "server":
    listener, greeter = (socket.create_server(("", port)) for port in (7000, 7001))
    s, _ = listener.accept()
else:
    s = connect(7000)
began, count, late, heard, right = time.monotonic(), 0, 0, "nothing", True
text = bytes(range(250)) * 800
try:
    while (left := began + 9 - time.monotonic()) > 0:
        s.settimeout(left)
        if role == "server":
            more = s.send(text[count % 250:])
        else:
            part = s.recv(100_000)
            more = len(part)
            right &= part == text[count % 250:][:more]
        if more == 0:
            heard = "end"
            break
        count += more
        late += more if left < 3 else 0
except OSError as error:
    heard = errno.errorcode.get(error.errno, "nothing")
took = time.monotonic() - began
tell(f"{role}-{chain}", dict(heard=heard, after_s=took, bytes=count, late=late, right=right))
s.close()
if role == "server":
    while True:
        greeter.accept()[0].sendall(b"hello")
else:
    tell(f"again-{chain}", connect(7001).recv(5).decode())
"""

# Ends when all have told.
ALL = """
import os, sys, time
deadline = time.monotonic() + 40
while not all(os.path.exists(name) for name in sys.argv[1:]) and time.monotonic() < deadline:
    time.sleep(0.1)
"""

DIES: Final = {"crashes": [{"at": "2 s", "lasts": "300 ms"}]}
"""After two seconds the gateway is gone for 0.3 s, and with it all that it knew."""

IMPATIENT: Final[dict[str, Any]] = {"maximum_retransmissions": 3}
"""A sender gives up after some seconds, not after a quarter of an hour."""

BARE: Final[dict[str, Any]] = {**IMPATIENT, "timestamps": False}

SPLIT: Final = {"kind": "split", "tcp": IMPATIENT, "idle_timeout": "3 s"}
UNTIMED: Final = {**SPLIT, "tcp": BARE, "host_tcp": BARE}

CHAINS: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "alone": ({**SPLIT, **DIES}, {}),
    "sender": ({**SPLIT, **DIES}, SPLIT),
    "receiver": (SPLIT, {**SPLIT, **DIES}),
    "untimed": (UNTIMED, {**UNTIMED, **DIES}),
    "multiplexed": ({**SPLIT, "multiplex": 1, **DIES}, {**SPLIT, "multiplex": 1}),
}
"""The gateways at the hub, next to the sender, and at the terminal."""


def network() -> dict[str, Any]:
    """Return a short satellite link for each of the chains, and a flow that does not end."""
    scenario: dict[str, Any] = {"name": "crashes", "duration": "60 s"}
    parts: dict[str, dict[str, Any]] = {key: {} for key in ("hosts", "gateways", "links", "flows")}
    for name, (hub, terminal) in CHAINS.items():
        server, client = f"server-{name}", f"client-{name}"
        timestamps = {"timestamps": name != "untimed"}
        parts["hosts"] |= {server: {"tcp": IMPATIENT | timestamps}, client: {"tcp": timestamps}}
        for place, gateway in {"hub": hub, "terminal": terminal}.items():
            facing = {"facing": f"satellite-{name}"} if gateway else {}
            parts["gateways"][f"{place}-{name}"] = {**gateway, **facing}
        between = {
            "lan": ([server, f"hub-{name}"], "100 Mbit/s", "1 ms"),
            "satellite": ([f"hub-{name}", f"terminal-{name}"], "10 Mbit/s", "25 ms"),
            "home": ([f"terminal-{name}", client], "100 Mbit/s", "1 ms"),
        }
        for link, (ends, rate, delay) in between.items():
            parts["links"][f"{link}-{name}"] = {"between": ends, "rate": rate, "delay": delay}
        parts["flows"][name] = {"from": server, "to": client, "app": {"kind": "bulk"}}
    return scenario | parts


def test_simulated_flow_outcomes_after_gateway_crashes() -> None:
    summary = bentpipe.run(network()).summary
    outcomes = {flow.name: flow.outcome for flow in summary.flows}
    assert outcomes == {
        # Its segments pass unsplit, with sequence numbers that the other side does not expect.
        "alone": "gave up",
        "sender": "gave up",
        # The terminal held nothing, the numbers are the hosts': the hub goes on with the client.
        "receiver": "running",
        "untimed": "running",
        # The other gateway has a persistent connection of which this one knows nothing.
        "multiplexed": "reset",
    }
    for gateway in summary.gateways:
        if "crashes" in gateway.extra:
            assert gateway.extra["crashes"]["count"] == 1
            assert gateway.extra["crashes"]["connections_lost"] == 1
            assert gateway.extra["crashes"]["packets_lost"] > 0
            assert gateway.bytes_held["now"] == 0


@live
def test_kernel_socket_errors_after_gateway_crashes(tmp_path: Path) -> None:
    program = tmp_path / "end.py"
    program.write_text(END)
    files = {
        (role, name): tmp_path / f"{role}-{name}.json"
        for name in CHAINS
        for role in ("server", "client", "again")
    }
    commands = [
        Command(
            host=f"{role}-{name}",
            words=(sys.executable, str(program), str(tmp_path), role, name),
            waited_for=False,
        )
        for name in CHAINS
        for role in ("server", "client")
    ]
    last = (sys.executable, "-c", ALL, *map(str, files.values()))
    commands.append(Command(host="client-alone", words=last, waited_for=True))
    assert bentpipe.emulate(network(), commands=commands).status == 0
    told = {end: json.loads(file.read_text()) for end, file in files.items()}
    print(told)
    for (role, name), end in told.items():
        if role == "again":
            assert end == "hello", name
            continue
        assert end["right"], "other bytes than were sent"
        assert end["heard"] != "end", "an end that was none"
        assert end["bytes"] > 500_000, name
        if name not in ("receiver", "untimed"):
            assert end["late"] == 0, name
    heard = {name: [told[role, name]["heard"] for role in ("server", "client")] for name in CHAINS}
    # The server's segments pass unsplit, with sequence numbers that the client does not expect.
    assert heard["alone"] == ["ETIMEDOUT", "nothing"]
    # The terminal resets both by its idle timeout, unless the server has given up before.
    assert heard["sender"] in (["ETIMEDOUT", "ECONNRESET"], ["ECONNRESET", "ECONNRESET"])
    assert heard["multiplexed"] == ["ECONNRESET", "ECONNRESET"]
    # The hub goes on with the client itself, slowly: it reads its windows by the terminal's scale;
    assert heard["untimed"] == ["nothing", "nothing"]
    assert told["client", "untimed"]["late"] > 0
    # with timestamps only if the kernel's happen to follow the terminal's (RFC 7323 section 5.3).
    # If not, the hub gives up, and the server is reset.
    assert heard["receiver"] in (["nothing", "nothing"], ["ECONNRESET", "nothing"])
