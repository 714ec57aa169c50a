"""The commands' names, arguments and help; each calls a module that is imported only then."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from bentpipe.cli import completion


def _empty() -> typer.Typer:
    return typer.Typer(
        name="bentpipe",
        help="A workbench for TCP over satellite and other long, asymmetric paths.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


application = _empty()


def application_for(arguments: Sequence[str]) -> typer.Typer:
    """Return the command line with no other command than the one that is asked for.

    Typer reads the signature of every command that it has: that took as long as a short run. With
    anything but a command's name in front, such as --help, all of them are there.
    """
    asked = [each for each in application.registered_commands if each.name in arguments[:1]]
    if not asked:
        return application
    alone = _empty()
    alone.registered_callback = application.registered_callback
    alone.registered_commands = asked
    return alone


ScenarioFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A scenario file, or the name of a ready-made scenario; - is standard input.",
        autocompletion=completion.scenarios,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key, such as hosts.server.tcp.congestion_control=reno. Repeatable.",
        autocompletion=completion.settings,
    ),
]
PythonFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--python",
        metavar="PY",
        help="Run this Python file first; it may register congestion controls. Repeatable.",
    ),
]


def _path(text: str) -> Path:
    """Read a path; Path("") would be the working folder, and is a script's unset variable."""
    if not text:
        raise typer.BadParameter("expected a path, got nothing")
    return Path(text)


Seed = Annotated[
    int | None,
    typer.Option(min=0, max=2**64 - 1, metavar="N", help="Instead of the file's seed."),
]
ResultFolder = Annotated[
    Path | None,
    typer.Option(
        parser=_path, metavar="DIR", help="Write summary.json, probes.parquet and plots here."
    ),
]
Captures = Annotated[
    list[str] | None,
    typer.Option(metavar="LINK", help="Capture this link's packets in LINK.pcapng. Repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def _version(wanted: bool) -> None:
    if wanted:
        from bentpipe._native import __commit__, __version__

        print(f"bentpipe {__version__}" + (f" (commit {__commit__})" if __commit__ else ""))
        raise typer.Exit


@application.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and the commit."
        ),
    ] = False,
) -> None:
    del version


@application.command("run")
def _run(
    file: ScenarioFile,
    seed: Seed = None,
    settings: Settings = None,
    out: ResultFolder = None,
    pcap: Captures = None,
    flent: Annotated[
        Path | None,
        typer.Option(
            parser=_path, metavar="FILE", help="Write what flent plots here: out.flent.gz."
        ),
    ] = None,
    rrul: Annotated[
        bool,
        typer.Option(
            "--rrul",
            help="RRUL in the place of the flows: four TCPs each way, three UDP echoes and a ping.",
        ),
    ] = False,
    python: PythonFiles = None,
    everyone: Annotated[
        bool, typer.Option("--all", help="A row for every flow and link, however many.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Simulate a scenario, packet by packet."""
    from bentpipe.cli.run import run

    run(
        file=file,
        seed=seed,
        settings=settings or [],
        out=out,
        pcap=pcap or [],
        python=python or [],
        everyone=everyone,
        as_json=json,
        rrul=rrul,
        flent=flent,
    )


@application.command("emulate", context_settings={"ignore_unknown_options": False})
def _emulate(
    file: ScenarioFile,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND...]",
            help="Run this instead of the flows; on the --shell host, or the first flow's.",
        ),
    ] = None,
    shell: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Open a shell inside this host instead of the flows."),
    ] = None,
    serve: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST=COMMAND", help="Run a server inside a host meanwhile. Repeatable."
        ),
    ] = None,
    attach: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST=our",
            help="Put our own TCP in this host's place, not the kernel's. Repeatable.",
        ),
    ] = None,
    seed: Seed = None,
    settings: Settings = None,
    out: ResultFolder = None,
    pcap: Captures = None,
    json: AsJson = False,
) -> None:
    """Run a scenario in real time, with the kernel's TCP or your own programs at its ends."""
    from bentpipe.cli.emulate import emulate

    status = emulate(
        file=file,
        command=command or [],
        shell=shell,
        serve=serve or [],
        attach=attach or [],
        seed=seed,
        settings=settings or [],
        out=out,
        pcap=pcap or [],
        as_json=json,
    )
    if status:
        raise typer.Exit(status)


@application.command("compare")
def _compare(
    file: ScenarioFile,
    seed: Seed = None,
    settings: Settings = None,
    plot: Annotated[
        Path | None,
        typer.Option(parser=_path, metavar="FILE.svg", help="Plot both TCPs over each other."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Predict, simulate and emulate a scenario, side by side."""
    from bentpipe.cli.compare import compare

    compare(file=file, seed=seed, settings=settings or [], plot=plot, as_json=json)


@application.command("predict")
def _predict(file: ScenarioFile, settings: Settings = None, json: AsJson = False) -> None:
    """Evaluate the closed-form models that apply to a scenario."""
    from bentpipe.cli.predict import predict

    predict(file=file, settings=settings or [], as_json=json)


@application.command("advise")
def _advise(
    file: ScenarioFile,
    settings: Settings = None,
    plot: Annotated[
        Path | None,
        typer.Option(parser=_path, metavar="FILE.svg", help="Plot what each remedy gives."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Simulations at a time. [default: one per core]"),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(min=1, max=1000, metavar="N", help="Seeds of each, where anything is random."),
    ] = 3,
    everything: Annotated[
        bool, typer.Option("--all", help="Every flow, and what was tried in vain.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Say what limits a scenario, and which remedies would help: each simulated."""
    from bentpipe.cli.advise import advise

    advise(
        file=file,
        settings=settings or [],
        plot=plot,
        workers=workers,
        seeds=seeds,
        everything=everything,
        as_json=json,
    )


@application.command("reproduce")
def _reproduce(
    studies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STUDY]...",
            help="Which papers; all of them by default.",
            autocompletion=completion.studies,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer cells, coarser curves.")] = False,
    out: Annotated[
        Path, typer.Option(parser=_path, metavar="DIR", help="Where the report goes.")
    ] = Path("reproduction"),
    json: AsJson = False,
) -> None:
    """Reproduce the papers' figures and check their claims."""
    from bentpipe.cli.reproduce import reproduce

    reproduce(names=studies or [], quick=quick, out=out, as_json=json)


@application.command("sweep")
def _sweep(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A sweep file: scenario and axes.",
            autocompletion=completion.files,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            parser=_path,
            metavar="DIR",
            help="Where the results go, a Parquet dataset. [default: NAME.parquet]",
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Cells at a time. [default: one per core]")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a sweep that was cut short.")
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Simulate on the cluster of this Dask scheduler."),
    ] = None,
    series: Annotated[
        bool, typer.Option("--series", help="Keep every cell's probes, too.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(parser=_path, metavar="FILE.svg", help="Plot goodput along one or two axes."),
    ] = None,
    python: PythonFiles = None,
    json: AsJson = False,
) -> None:
    """Simulate a scenario along axes, on all cores."""
    from bentpipe.cli.sweep import sweep

    sweep(
        file=file,
        out=out,
        workers=workers,
        resume=resume,
        dask=dask,
        series=series,
        plot=plot,
        python=python or [],
        as_json=json,
    )


@application.command("new")
def _new(
    file: Annotated[
        Path | None,
        typer.Argument(
            parser=_path, metavar="[FILE]", help="Where it goes. [default: TEMPLATE.toml]"
        ),
    ] = None,
    template: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="ship, office, leo or modem.",
            autocompletion=completion.templates,
        ),
    ] = "ship",
) -> None:
    """Write a scenario to begin with, every line of it explained."""
    from bentpipe.cli.new import new

    new(file=file, template=template)


@application.command("explain")
def _explain(
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[KEY]",
            help="links.satellite.forward.rate, or delayed_ack, or a word such as hybla.",
            autocompletion=completion.explained,
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Say what a key of the scenario file means, takes, and is without it."""
    from bentpipe.cli.explain import explain, print_tables

    if key is None:
        print_tables()
    else:
        explain(what=key, as_json=json)


@application.command("list")
def _list(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help="scenarios, studies, congestion-controls, ...; without it, all kinds.",
            autocompletion=completion.kinds,
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """List what there is to choose from."""
    from bentpipe.cli.listing import print_list

    print_list(kind=kind, as_json=json)


@application.command("schema")
def _schema(
    of: Annotated[
        str,
        typer.Argument(metavar="[WHAT]", help="scenario (the default), or results."),
    ] = "scenario",
) -> None:
    """Print the JSON Schema of the scenario file, for editors, or of what `run --json` prints."""
    from bentpipe.cli.listing import print_schema

    print_schema(of)


@application.command("doctor")
def _doctor(json: AsJson = False) -> None:
    """Say what this machine can do, and what is missing."""
    from bentpipe.cli.doctor import doctor

    doctor(as_json=json)
