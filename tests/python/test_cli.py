"""The command line's contract: what each command prints, of what, and what it loads for that."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bentpipe import _native
from bentpipe.cli.commands import COMMANDS

from .commands import COMMAND, SMALL, assert_refused

# With room for a few more: what this is to notice is a package.
MOST_OWN_MODULES, MOST_MODULES = 24, 120


def test_json_output_has_the_documented_fields(bentpipe: Any, small: Path) -> None:
    said = bentpipe("run", small, "--json")
    assert (said.status, said.err) == (0, "")
    summary = said.data
    assert summary.keys() >= {
        *("scenario", "seed", "duration_s", "wall_s", "packet_hops"),
        *("flows", "links", "gateways"),
    }
    (flow,) = summary["flows"]
    assert flow.keys() >= {
        *("name", "outcome", "bytes_delivered", "goodput_bps"),
        *("start_s", "first_data_s", "finish_s", "ended_s"),
        *("segments_sent", "segments_retransmitted", "timeouts", "fast_recoveries", "rtt_ms"),
    }
    assert flow["rtt_ms"].keys() >= {"min", "mean", "p95", "max"}
    assert flow["bytes_delivered"] == 300_000
    assert [link["name"] for link in summary["links"]] == ["satellite.forward", "satellite.return"]
    for link in summary["links"]:
        assert link.keys() >= {
            *("utilization", "packets_delivered", "packets_lost", "packets_dropped"),
            *("queue_max_packets", "queue_max_bytes"),
        }


def test_table_has_units(bentpipe: Any, small: Path) -> None:
    said = bentpipe("run", small)
    assert (said.status, said.err) == (0, "")
    row = next(line for line in said.out.splitlines() if line.startswith("download "))
    assert re.search(r"\d+ kbit/s +300 kB +finished +\d", row)
    assert re.search(r" 50\d ms ", row)
    assert "satellite.forward" in said.out


def test_abandoned_flow_has_outcome_gave_up(bentpipe: Any, small: Path) -> None:
    lost = f"links.satellite.forward.errors.lost_packets={list(range(100, 500))}"
    changed = (lost, "duration=2 h", "links.satellite.forward.rate=1 Mbit/s")
    settings = [word for setting in changed for word in ("--set", setting)]
    said = bentpipe("run", small, *settings, "--json")
    (flow,) = said.data["flows"]
    assert (said.status, flow["outcome"], flow["finish_s"]) == (0, "gave up", None)
    # Fifteen retransmissions, each after twice the wait of the one before, up to two minutes.
    assert flow["ended_s"] == said.data["ended_s"] > 600
    assert flow["goodput_bps"] == pytest.approx(8 * flow["bytes_delivered"] / flow["ended_s"])
    table = bentpipe("run", small, *settings).out
    assert re.search(r"^download .+  gave up  1\d\d\d s  ", table, re.MULTILINE)


def test_many_flows_are_printed_as_rows(bentpipe: Any, small: Path) -> None:
    more = [
        f'[flows.more{index}]\nfrom = "server"\nto = "client"\napp = {{ kind = "bulk" }}'
        for index in range(6)
    ]
    small.write_text("\n".join([SMALL, *more]), encoding="utf-8")
    said = bentpipe("run", small)
    assert said.status == 0
    assert re.search(r"^more5 +[\d.]+ k?bit/s +[\d.]+ k?B +", said.out, re.MULTILINE)


def test_seed_and_settings_change_the_run(bentpipe: Any, small: Path) -> None:
    assert bentpipe("run", small, "--json").data["seed"] == 7
    assert bentpipe("run", small, "--json", "--seed", 11).data["seed"] == 11
    slow = bentpipe("run", small, "--json", "--set", "links.satellite.rate=200 kbit/s").data
    assert slow["flows"][0]["goodput_bps"] < 200_000


def test_equal_seeds_give_equal_runs(bentpipe: Any, small: Path) -> None:
    lossy = ("--set", "links.satellite.errors.packet_loss_rate=0.02", "--json")
    runs = [bentpipe("run", small, *lossy).data for _ in range(2)]
    for each in runs:
        del each["wall_s"]
    assert runs[0] == runs[1]


def test_ready_made_scenarios_run_by_name(bentpipe: Any) -> None:
    names = bentpipe("list", "scenarios", "--json").data["scenarios"]
    assert len(names) >= 6
    for name in names:
        assert bentpipe("run", name, "--json").data["scenario"] == name


def test_predict_names_the_binding_limit(bentpipe: Any, small: Path) -> None:
    settings = ("hosts.client.tcp.delayed_ack=off", "hosts.client.tcp.receive_buffer=64 kB")
    said = bentpipe("predict", small, "--json", "--set", settings[0], "--set", settings[1])
    assert (said.status, said.err) == (0, "")
    (flow,) = said.data["flows"]
    assert flow["binding"] == min(flow["limits_bps"], key=flow["limits_bps"].get)
    models = {model["name"]: model for model in flow["models"]}
    assert models.keys() == {
        *("obata2000", "delayed_ack", "lakshman", "mathis", "padhye", "cardwell"),
        *("cubic", "hybla"),
    }
    assert models["delayed_ack"]["applies"]
    assert models["delayed_ack"]["throughput_bps"] > 0
    assert not models["padhye"]["applies"]
    assert models["padhye"]["throughput_bps"] is None

    table = bentpipe("predict", small)
    assert re.search(r"a limit: (binds, within \d+%|the lowest, not likely)", table.out)
    assert "no: " in table.out


def cells(out: str, first: str) -> list[list[str]]:
    """Return the rows of the table whose first heading this is, until an empty line."""
    lines = out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.split("  ")[0] == first)
    rows = lines[start + 1 :]
    end = rows.index("") if "" in rows else len(rows)
    return [re.split(r" {2,}", row) for row in rows[:end]]


def test_predict_marks_user_and_call_estimates_as_unlikely(bentpipe: Any) -> None:
    calls = bentpipe("predict", "vsat-office").out
    assert "both ways" in calls
    assert re.search(r"offered +138 kbit/s +an estimate: the lowest, not likely", calls)
    assert re.search(r"not likely +it shares the path with \d+ other flows; a queue that", calls)
    # A page is read: no link binds who reads.
    assert "a limit: the lowest" in calls
    assert "none of the 8 models applies: it is of one bulk transfer, and this is " in calls


def test_run_notes_a_hybrid_gateway_window_that_limits_goodput(bentpipe: Any) -> None:
    slow = bentpipe("run", "hybrid-internet", "--set", 'duration="20 s"')
    said = re.search(
        r"note: gateways\.hub\.receive_buffer: .*?(\d+) kB", " ".join(slow.out.split())
    )
    assert said is not None
    assert said[1] == "64"
    changed = re.search(r'receive_buffer = "([^"]*)"\s+fills\s+it', slow.out)
    assert changed is not None
    instead = ("--set", f'gateways.hub.receive_buffer="{changed[1]}"')
    assert (
        "note: " not in bentpipe("run", "hybrid-internet", "--set", 'duration="1 s"', *instead).out
    )


def test_run_shows_queue_classes_and_call_impairments(bentpipe: Any) -> None:
    noc = bentpipe("run", "hybrid-noc", "--json").data
    out = bentpipe("run", "hybrid-noc").out
    rows = cells(out, "queue")
    told = [(link["name"], each) for link in noc["links"] for each in link.get("classes", ())]
    assert [row[:2] for row in rows] == [[name, each["name"]] for name, each in told]
    assert [row[3] for row in rows] == [f"{each['packets_dropped']:,}" for _, each in told]
    assert any(row[3] != "0" for row in rows)

    settings = ("--set", "links.satellite.queue.kind=drop-tail")
    office = bentpipe("run", "vsat-office", *settings, "--json").data
    ways = [
        call[way]
        for flow in office["flows"]
        for call in flow.get("calls") or ()
        for way in ("there", "back")
        if call[way] is not None
    ]
    table = bentpipe("run", "vsat-office", *settings).out
    late = sum(way["late"] for way in ways) / sum(way["packets"] for way in ways)
    assert late > 0.1
    assert f"{late:.2%}" in table
    assert "packets lost" in table


def test_group_summary_counts_videos(bentpipe: Any, tmp_path: Path) -> None:
    film = '{ kind = "video", lasts = "8 s" }'
    file = tmp_path / "films.toml"
    text = [
        'name = "films"\nduration = "60 s"\nhosts = { user = { count = 14 }, server = {} }',
        '[links.home]\nbetween = ["user", "server"]\nrate = "10 Mbit/s"\ndelay = "10 ms"',
        f'[flows.film]\nfrom = "user"\nto = "server"\napp = {film}',
    ]
    file.write_text("\n".join(text), encoding="utf-8")
    [group] = bentpipe("run", file, "--json").data["groups"]
    assert group["video"]["started"] == 14
    [row] = cells(bentpipe("run", file).out, "flow")[:1]
    assert row[:3] == ["film", "start-up", "14"]


def test_lists_schema_and_doctor(bentpipe: Any) -> None:
    everything = bentpipe("list", "--json").data
    assert "obata2000" in everything["studies"]
    assert "reno" in everything["congestion-controls"]
    for kind, names in everything.items():
        assert [line.split()[0] for line in bentpipe("list", kind).out.splitlines()] == names
        assert kind in bentpipe("list").out
    schema = bentpipe("schema").data
    assert schema["type"] == "object"
    found = {each["name"]: each["found"] for each in bentpipe("doctor", "--json").data["findings"]}
    assert found["simulator"]
    assert found.keys() >= {"ns-2", "tshark"}
    assert "simulator" in bentpipe("doctor").out


def test_scenario_is_read_from_standard_input(small: Path) -> None:
    for name in ("-", "/dev/stdin"):
        for text, status in ((SMALL, 0), (SMALL.replace("delay", "dealy"), 2)):
            process = subprocess.run(
                [*COMMAND, "run", name, "--json"],
                input=text,
                capture_output=True,
                text=True,
                check=False,
            )
            assert process.returncode == status, process.stderr
            if status:
                assert process.stderr.startswith(f"bentpipe: {name}:10: ")
            else:
                assert json.loads(process.stdout)["flows"][0]["bytes_delivered"] == 300_000
    shell = f'{" ".join(COMMAND)} run <(cat "$0") --json'
    process = subprocess.run(
        ["bash", "-c", shell, str(small)], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout)["scenario"] == "small"


def test_help_and_version(bentpipe: Any) -> None:
    assert bentpipe("--help").status == 0
    said = bentpipe("--version").out
    assert re.fullmatch(
        r"bentpipe \d+\.\d+\.\d+( \(commit [0-9a-f]{12}(, with changes)?\))?\n", said
    )
    if _native.__commit__:
        assert _native.__commit__ in said
    alone = bentpipe()
    assert (alone.status, alone.err) == (2, "")
    for name, command in COMMANDS.items():
        said = bentpipe(name, "--help")
        assert said.status == 0
        for parameter in command.parameters.values():
            assert parameter.option in said.out


def loaded_by(*arguments: object) -> set[str]:
    """Return the modules that a command line imports."""
    script = (
        "import sys; from bentpipe import cli; status = cli.execute(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr); sys.exit(status)"
    )
    process = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(process.stderr.split())


def test_run_imports_only_required_modules(small: Path) -> None:
    """Start-up is bounded by what is imported; times would depend on the machine."""
    # Each of them costs more than the run itself: rich alone is a third of the start.
    heavy = {"numpy", "matplotlib", "pyarrow", "jinja2", "pydantic", "rich", "tomllib", "typer"}
    for options in (["--json"], ["--seed", "2", "--set", "duration=20 s"]):
        loaded = loaded_by("run", small, *options)
        assert not loaded & heavy
        # Python itself has some 90; ours are what a run needs, each a file to read.
        ours = {name for name in loaded if name.startswith("bentpipe")}
        assert len(ours) <= MOST_OWN_MODULES
        assert len(loaded) <= MOST_MODULES


def test_run_output_does_not_import_pandas(small: Path, tmp_path: Path) -> None:
    """It is there, since xarray needs it, and takes longer to import than most runs."""
    loaded = loaded_by("run", small, "--out", tmp_path / "out")
    assert "pyarrow" in loaded
    assert "pandas" not in loaded


def test_results_page_is_generated_from_the_schema(bentpipe: Any) -> None:
    said = bentpipe("schema", "results")
    assert (said.status, said.err) == (0, "")
    root = Path(__file__).parents[2]
    page = (root / "docs" / "results.md").read_text(encoding="utf-8")
    tool = [sys.executable, str(root / "tools" / "results-reference")]
    made = subprocess.run(tool, input=said.out, capture_output=True, text=True, check=True)
    assert made.stdout == page, "make docs"
    assert_refused(bentpipe("schema", "result"), "scenario or results")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_unencodable_characters_do_not_fail_the_command(small: Path, encoding: str) -> None:
    for command in ("run", "predict"):
        done = subprocess.run(
            [*COMMAND, command, str(small)],
            env={**os.environ, "PYTHONIOENCODING": encoding},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"small" in done.stdout


def test_node_discards_are_reported_by_reason(bentpipe: Any, small: Path) -> None:
    busy = 'hosts.client.processing={ time = "20 ms", queue = "5 packets" }'
    said = bentpipe("run", small, "--set", busy, "--json")
    discarded = said.data["packets_discarded"]
    assert discarded > 0
    assert said.data["discards"] == {"processor_busy": discarded}
    assert all(link["packets_dropped"] == 0 for link in said.data["links"])
    told = f"discarded at nodes: {discarded:,} for which a processor's queue had no room"
    assert told in bentpipe("run", small, "--set", busy).out
    plain = bentpipe("run", small, "--json")
    assert plain.data["discards"] == {}
    assert "discarded" not in bentpipe("run", small).out
