"""A split gateway that receives by a dish and sends by a modem."""

from __future__ import annotations

import json
from pathlib import Path

from .boxes import Box, fetch, gateway, listen, live, row
from .test_gateway import write_scenario

pytestmark = live

DISH = """
name = "dish"
duration = "60 s"
hosts = { server = {}, client = {} }
[gateways.provider]
[gateways.terminal]
kind = "split"
facing = "modem"
[links.backbone]
between = ["server", "provider"]
rate = "100 Mbit/s"
delay = "1 ms"
[links.dish]
between = ["provider", "terminal"]
one_way = true
rate = "10 Mbit/s"
delay = "250 ms"
[links.modem]
between = ["terminal", "provider"]
one_way = true
rate = "1 Mbit/s"
delay = "50 ms"
[links.lan]
between = ["terminal", "client"]
rate = "100 Mbit/s"
delay = "1 ms"
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk", size = "1 MB" }
"""
SIDES = ("dish=to-server", "modem=modem", "lan=to-client")
WORDS = ("--gateway", "terminal", *(word for side in SIDES for word in ("--interface", side)))
# The server has an address that is on neither cable.
ADDRESS = "10.77.0.1"


def bytes_of(box: Box, name: str, way: str) -> int:
    """Return how many bytes an interface has received (`rx`) or sent (`tx`)."""
    [interface] = json.loads(box.ip(f"-json -stats link show dev {name}"))
    return int(interface["stats64"][way]["bytes"])


def test_dish_and_modem_on_one_machine(tmp_path: Path) -> None:
    with row("server", "terminal", "client") as boxes:
        server, terminal, client = boxes
        server.ip(f"link add modem type veth peer name modem netns {terminal.pid}")
        for box, host in ((server, 1), (terminal, 2)):
            box.sysctl("net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")
            box.sysctl(
                "net.ipv4.conf.modem.rp_filter=0", f"net.ipv4.conf.{name_of(box)}.rp_filter=0"
            )
            box.ip(f"address add 10.9.0.{host}/24 dev modem")
            box.ip("link set modem up")
        server.ip(f"address add {ADDRESS}/32 dev lo")
        # Answers of the server come by the dish; what the terminal sends leaves by the modem.
        terminal.ip(f"route add {ADDRESS} via 10.9.0.1")
        client.ip(f"route add {ADDRESS} via 10.2.0.1")
        listen(server)
        with gateway(terminal, write_scenario(tmp_path, DISH), *WORDS) as running:
            for _ in range(3):
                fetch(client, ADDRESS)
            said = running.end()
        [told] = said["gateways"]
        assert told["connections"]["split"] == 3
        # 300 kB were sent and answered each time. ARP and neighbour discovery take little.
        assert bytes_of(terminal, "modem", "tx") > 900_000
        assert bytes_of(terminal, "to-server", "rx") > 900_000
        assert bytes_of(terminal, "modem", "rx") < 20_000
        assert bytes_of(terminal, "to-server", "tx") < 20_000


def name_of(box: Box) -> str:
    """Return the name of a box's cable to the other end of the dish."""
    return "to-terminal" if box.name == "server" else "to-server"
