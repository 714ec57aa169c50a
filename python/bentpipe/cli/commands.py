"""The commands' names, parameters and help, in a table; each is a module, imported when called."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bentpipe.cli.declaring import Command, GatewayParameters, argument, flag, option

_FILE: Final = argument(
    "FILE",
    "A scenario file, or the name of a ready-made scenario; - is standard input.",
    required=True,
    complete="scenarios",
)
_SETTINGS: Final = option(
    "--set",
    "KEY=VALUE",
    "Change a key, such as links.satellite.forward.rate=8Mbit/s. Repeatable.",
    many=True,
    complete="settings",
)
_PYTHON: Final = option(
    "--python",
    "PY",
    "Run this Python file, or an example, first; it may register congestion controls. Repeatable.",
    kind=Path,
    many=True,
    may_be_empty=True,
)
_SEED: Final = option(
    "--seed", "N", "Instead of the file's seed.", kind=int, least=0, most=2**64 - 1
)
_OUT: Final = option(
    "--out", "DIR", "Write summary.json, probes.parquet and plots here.", kind=Path
)
_PCAP: Final = option(
    "--pcap", "LINK", "Capture this link's packets in LINK.pcapng. Repeatable.", many=True
)
_SNAP: Final = option(
    "--snap",
    "LENGTH",
    "Capture at most so many bytes of each packet; 100 holds all headers.",
    kind=int,
    least=1,
    most=65535,
)
_WORKERS: Final = option(
    "--workers", "N", "Simulations at a time. [default: one per core]", kind=int, least=1
)
_DASK: Final = option("--dask", "ADDRESS", "Simulate on the cluster of this Dask scheduler.")
_JSON: Final = flag("--json", "Print one JSON object and nothing else.")

COMMANDS: Final = {
    "run": Command(
        "Simulate a scenario, packet by packet.",
        "run.run",
        {
            "file": _FILE,
            "seed": _SEED,
            "seeds": option(
                "--seeds",
                "N",
                "Simulate with N seeds, from the seed on, and print medians and ranges.",
                kind=int,
                least=1,
                most=1000,
            ),
            "cores": option(
                "--cores",
                "N",
                "Divide the network at its long links, and simulate the parts on at most N cores. "
                "The results are the same. [default: all cores for 1000 flows or more, else one]",
                kind=int,
                least=1,
                most=64,
            ),
            "settings": _SETTINGS,
            "out": _OUT,
            "pcap": _PCAP,
            "snap": _SNAP,
            "flent": option(
                "--flent", "FILE", "Write what flent plots here: out.flent.gz.", kind=Path
            ),
            "rrul": flag(
                "--rrul",
                "RRUL in the place of the flows: four TCPs each way, three UDP echoes and a ping.",
            ),
            "python": _PYTHON,
            "everyone": flag("--all", "A row for every flow and link, however many."),
            "as_json": _JSON,
        },
        (
            "run ship.toml --out results --pcap satellite",
            "run geo-rain --seed 2 --set hosts.server.tcp.congestion_control=bbr",
            "run geo-rain --seeds 20",
        ),
    ),
    "emulate": Command(
        "Run a scenario in real time, with the kernel's TCP or your own programs at its ends.",
        "emulate.emulate",
        {
            "file": _FILE,
            "command": argument(
                "[-- COMMAND...]",
                "Run this instead of the flows; on the --shell host, or where the first flow's "
                "data goes.",
                many=True,
            ),
            "shell": option(
                "--shell", "HOST", "Open a shell inside this host instead of the flows."
            ),
            "serve": option(
                "--serve",
                "HOST=COMMAND",
                "Run a server inside a host meanwhile. Repeatable.",
                many=True,
            ),
            "attach": option(
                "--attach",
                "HOST=our",
                "Put our own TCP in this host's place, not the kernel's. Repeatable.",
                many=True,
            ),
            "seed": _SEED,
            "settings": _SETTINGS,
            "out": _OUT,
            "pcap": _PCAP,
            "snap": _SNAP,
            "as_json": _JSON,
            "live": flag(
                "--live",
                "Write the bytes that each flow has delivered to stderr, 4 times a second.",
            ),
        },
        (
            "emulate ship.toml",
            "emulate ship.toml --shell ship -- ping -c 3 shore",
        ),
    ),
    # Its options are those of the program in Rust.
    "gateway": Command(
        "Be a gateway of a scenario on a real Linux machine, between its own interfaces.",
        "gateway.gateway",
        GatewayParameters(),
        ("gateway geo-split --gateway hub --interface backbone=eth0 --interface satellite=eth1",),
        parses_itself=True,
    ),
    "kernel": Command(
        "Load window rules such as Hybla into the running Linux kernel, as BPF programs.",
        "kernel.kernel",
        {
            "action": argument(
                "ACTION",
                "list, check, load, unload or status.",
                required=True,
                complete="kernel_actions",
            ),
            "rule": argument(
                "[RULE]",
                "A rule of kernel list, or the C source of your own, RULE.bpf.c.",
                complete="kernel_rules",
            ),
            "capacity": option(
                "--capacity", "RATE", "Enhanced Hybla: the channel's rate, such as 20Mbit/s."
            ),
            "rtt0": option(
                "--rtt0",
                "TIME",
                "Hybla: round-trip time of the reference connection. [default: 25ms]",
            ),
            "initial_threshold": option(
                "--initial-threshold",
                "SEGMENTS",
                "Slow-start threshold of new connections.",
                kind=int,
                least=2,
                most=2**24,
            ),
            "route": option(
                "--route",
                "DESTINATION",
                "Use the rule on this route, such as 192.0.2.0/24 or default, until unload.",
            ),
            "unit": flag("--unit", "Print a systemd unit that loads it at boot; load nothing."),
            "as_json": _JSON,
        },
        (
            "kernel check",
            "kernel load hybla --route 198.51.100.0/24",
            "kernel status",
            "kernel unload hybla",
        ),
    ),
    "compare": Command(
        "Predict, simulate and emulate a scenario, side by side.",
        "compare.compare",
        {
            "file": _FILE,
            "seed": _SEED,
            "seeds": option(
                "--seeds",
                "N",
                "Seeds of the simulated range beside what was emulated.",
                kind=int,
                least=1,
                most=1000,
                default=10,
            ),
            "settings": _SETTINGS,
            "plot": option("--plot", "FILE.svg", "Plot both TCPs over each other.", kind=Path),
            "python": _PYTHON,
            "as_json": _JSON,
        },
        ("compare t1-satellite --plot both.svg",),
    ),
    "predict": Command(
        "Evaluate the closed-form models that apply to a scenario.",
        "predict.predict",
        {"file": _FILE, "settings": _SETTINGS, "python": _PYTHON, "as_json": _JSON},
        ('predict ship.toml --set hosts.ship.tcp.receive_buffer="64 KiB"',),
    ),
    "orbit": Command(
        "Show the orbits of a scenario: passes, coverage, delays, handovers and gaps.",
        "orbit.orbit",
        {
            "file": _FILE,
            "settings": _SETTINGS,
            "at": option(
                "--at",
                "SECONDS",
                "Time of the map, in seconds since the start. [default: 0]",
                kind=float,
            ),
            "out": option(
                "--out",
                "DIR",
                "Write orbit.json, the tables as Parquet, and pictures here.",
                kind=Path,
            ),
            "as_json": _JSON,
        },
        (
            "orbit leo-office",
            'orbit leo-office --set sites.office.latitude="60.2 deg" --out sky',
        ),
    ),
    "advise": Command(
        "Say what limits a scenario, and which remedies would help: each simulated.",
        "advise.advise",
        {
            "file": _FILE,
            "settings": _SETTINGS,
            "plot": option("--plot", "FILE.svg", "Plot what each remedy gives.", kind=Path),
            "workers": _WORKERS,
            "dask": _DASK,
            "seeds": option(
                "--seeds",
                "N",
                "Seeds of each, where anything is random.",
                kind=int,
                least=1,
                most=1000,
                default=3,
            ),
            "only": option(
                "--only",
                "WHO",
                "Only what WHO can change: server, client, gateway or operator. Repeatable.",
                many=True,
            ),
            "without": option(
                "--without", "WHO", "Nothing that WHO has to change. Repeatable.", many=True
            ),
            "everything": flag("--all", "Every flow, and what was tried in vain."),
            "python": _PYTHON,
            "as_json": _JSON,
        },
        (
            "advise ship.toml",
            "advise ship.toml --only server --only client",
            "advise geo-consumer --seeds 5 --plot remedies.svg",
        ),
    ),
    "report": Command(
        "Write a report of scenarios for a decision maker: one HTML file.",
        "report.report",
        {
            "files": argument(
                "FILE...",
                "Scenario files, or names of ready-made scenarios; several are compared.",
                many=True,
                required=True,
                complete="scenarios",
            ),
            "out": option(
                "--out",
                "FILE.html",
                "Where the report goes.",
                kind=Path,
                default=Path("report.html"),
            ),
            "settings": _SETTINGS,
            "seeds": option(
                "--seeds",
                "N",
                "Seeds of each scenario, where anything is random; by default 3, with --quick 1.",
                kind=int,
                least=1,
                most=1000,
            ),
            "quick": flag("--quick", "Fewer seeds and fewer values of what is varied."),
            "workers": _WORKERS,
            "dask": _DASK,
            "python": _PYTHON,
            "as_json": _JSON,
        },
        (
            "report ship.toml",
            "report geo-consumer geo-split --out split.html",
            "report vsat-office --quick --set hosts.users.count=40",
        ),
    ),
    "reproduce": Command(
        "Reproduce the papers' figures and check their claims.",
        "reproduce.reproduce",
        {
            "names": argument(
                "[STUDY]...",
                "Which papers; all of them by default.",
                many=True,
                complete="studies",
            ),
            "quick": flag("--quick", "Fewer cells, coarser curves."),
            "out": option(
                "--out", "DIR", "Where the report goes.", kind=Path, default=Path("reproduction")
            ),
            "workers": _WORKERS,
            "dask": _DASK,
            "as_json": _JSON,
        },
        (
            "reproduce obata2000 --quick",
            "reproduce --out reproduction",
            "reproduce --dask tcp://10.0.0.1:8786",
        ),
    ),
    "evaluate": Command(
        "Evaluate a window rule (congestion control) by the criteria of RFC 9743.",
        "evaluate.evaluate",
        {
            "rule": argument(
                "RULE",
                "A built-in rule, or one that a --python file registers.",
                required=True,
                complete="window_rules",
            ),
            "python": _PYTHON,
            "out": option(
                "--out",
                "DIR",
                "Where the report and its data go.",
                kind=Path,
                default=Path("evaluation"),
            ),
            "only": option(
                "--only",
                "CRITERION",
                "Only this criterion, such as bufferbloat. Repeatable.",
                many=True,
                complete="criteria",
            ),
            "seeds": option(
                "--seeds",
                "N",
                "Simulations of each situation.",
                kind=int,
                least=1,
                most=100,
                default=3,
            ),
            "settings": option(
                "--set",
                "KEY=VALUE",
                "A TCP key of the hosts with the rule, such as pacing=on. Repeatable.",
                many=True,
            ),
            "workers": _WORKERS,
            "dask": _DASK,
            "as_json": _JSON,
        },
        (
            "evaluate hybla",
            "evaluate gentle --python examples/congestion_control.py --out gentle",
            "evaluate bbr3 --only bufferbloat --only coexistence",
        ),
    ),
    "sweep": Command(
        "Simulate a scenario along axes, on all cores.",
        "sweep.sweep",
        {
            "file": argument(
                "FILE",
                "A sweep file (scenario and axes), or the name of an example.",
                required=True,
                complete="sweeps",
            ),
            "out": option(
                "--out",
                "DIR",
                "Where the results go, a Parquet dataset. [default: NAME.parquet]",
                kind=Path,
            ),
            "workers": option(
                "--workers", "N", "Cells at a time. [default: one per core]", kind=int
            ),
            "cores": option(
                "--cores",
                "N",
                "Use at most N cores: cells first, then parts of a cell. [default: all]",
                kind=int,
                least=1,
                most=1024,
            ),
            "resume": flag("--resume", "Go on with a sweep that was cut short."),
            "dask": _DASK,
            "series": flag("--series", "Keep every cell's probes, too."),
            "metric": option(
                "--metric",
                "GROUP.KEY",
                "Show this of a table of flows, as results have it, not goodput: "
                "pages.page_load_ms.p50.",
            ),
            "plot": option(
                "--plot",
                "FILE.svg",
                "Plot goodput, or --metric, along one to three axes.",
                kind=Path,
            ),
            "settings": _SETTINGS,
            "python": _PYTHON,
            "as_json": _JSON,
        },
        (
            "sweep geo-bit-errors --plot errors.svg",
            "sweep geo-bit-errors --resume",
        ),
    ),
    "fit": Command(
        "Fit a scenario to measurements of your own network.",
        "fit.fit",
        {
            "files": argument(
                "FILE...",
                "Measurements: captures of a transfer (pcap, pcapng), output of ping, JSON of "
                "iperf3 or IRTT, flent's data.",
                required=True,
                many=True,
                complete="files",
            ),
            "out": option("--out", "FILE.toml", "Write the scenario here.", kind=Path),
            "figure": option(
                "--figure",
                "FILE.svg",
                "Simulate the fitted scenario and plot it beside the measurement. SVG or PNG.",
                kind=Path,
            ),
            "as_json": _JSON,
        },
        (
            "fit download.pcapng ping.txt --out office.toml",
            "fit download.pcapng --out office.toml --figure office.svg",
        ),
    ),
    "serve": Command(
        "Open the workbench: a page that edits, simulates, predicts, advises and emulates.",
        "serve.serve",
        {
            "file": argument(
                "[FILE]",
                "The scenario file to edit, or a lesson (.md) to show; without it, the page begins "
                "with a ready-made scenario.",
            ),
            "port": option(
                "--port",
                "N",
                "Port on 127.0.0.1. [default: any that is free]",
                kind=int,
                least=0,
                most=65535,
                default=0,
            ),
            "open_browser": flag("--open", "Open the page in the browser."),
        },
        (
            "serve ship.toml",
            "serve ship.toml --port 8000",
        ),
    ),
    "new": Command(
        "Write a scenario to begin with, every line of it explained.",
        "new.new",
        {
            "file": argument("[FILE]", "Where it goes. [default: TEMPLATE.toml]", kind=Path),
            "template": option(
                "--template",
                "NAME",
                "ship, office, leo or modem.",
                default="ship",
                complete="templates",
            ),
        },
        (
            "new",
            "new office.toml --template office",
        ),
    ),
    "explain": Command(
        "Say what a key of the scenario file means, takes, and is without it.",
        "explain.explain",
        {
            "what": argument(
                "[KEY]",
                "links.satellite.forward.rate, or delayed_ack, or a word such as hybla.",
                complete="explained",
            ),
            "as_json": _JSON,
        },
        (
            "explain links.satellite.forward.rate",
            "explain hybla",
        ),
    ),
    "list": Command(
        "List what there is to choose from.",
        "listing.print_list",
        {
            "kind": argument(
                "[KIND]",
                "scenarios, examples, studies, congestion-controls, ...; without it, all kinds.",
                complete="kinds",
            ),
            "as_json": _JSON,
        },
        (
            "list scenarios",
            "list congestion-controls",
        ),
    ),
    "schema": Command(
        "Print the JSON Schema of the scenario file, for editors, or of what `run --json` prints.",
        "listing.print_schema",
        {"of": argument("[WHAT]", "scenario (the default), or results.", default="scenario")},
        ("schema > scenario.schema.json",),
    ),
    "doctor": Command(
        "Say what this machine can do, and what is missing.",
        "doctor.doctor",
        {"as_json": _JSON},
        ("doctor",),
    ),
}
