"""`bentpipe serve`: who may ask, files, and jobs."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bentpipe.errors import RequestError
from bentpipe.serving.application import application
from bentpipe.serving.jobs import Jobs, Refused, arguments_of
from bentpipe.serving.scenario_file import ScenarioFile

SMALL = """
name = "small"
duration = "5 s"
hosts = { server = {}, client = {} }
flows.download = { from = "server", to = "client", app = { kind = "bulk", size = "20 kB" } }
[links.satellite]
between = ["server", "client"]
rate = "1 Mbit/s"
delay = "50 ms"
"""
TOKEN = "secret"


class Server:
    """A server with pages of the test's own, in a thread."""

    def __init__(self, port: int, file: Path) -> None:
        self.port = port
        self.file = file
        self.cookie = f"bentpipe-{port}={TOKEN}"

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        raw: bytes | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> tuple[int, str, http.client.HTTPMessage]:
        """Ask as the page does, but for the headers given; None leaves one out."""
        own: dict[str, str | None] = {
            "Cookie": self.cookie,
            "Origin": f"http://127.0.0.1:{self.port}",
            "Content-Type": "application/json",
        }
        own |= headers or {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        sent = {name: value for name, value in own.items() if value is not None}
        connection.request(method, path, content, sent)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text, response.headers

    def job(self, **request: object) -> dict[str, Any]:
        status, text, _ = self.ask("POST", "/api/jobs", request)
        assert status in {200, 400}, text
        answer: dict[str, Any] = json.loads(text)
        return answer


@contextmanager
def running(tmp_path: Path) -> Iterator[Server]:
    import socket
    import threading

    import uvicorn

    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.html").write_text("<html><head></head><body>page</body></html>")
    (pages / "app.js").write_text("// script")
    figures = tmp_path / "reproduction"
    (figures / "karir1999").mkdir(parents=True)
    (figures / "karir1999" / "figure-1.svg").write_text("<svg></svg>")
    (tmp_path / "secret.svg").write_text("<svg>secret</svg>")
    (tmp_path / "link").symlink_to("/etc/passwd")
    file = tmp_path / "ship.toml"
    file.write_text(SMALL)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    port = listener.getsockname()[1]
    app = application(pages=pages, file=ScenarioFile(file), figures=figures, token=TOKEN, port=port)
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield Server(port, file)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("serve")) as started:
        yield started


def test_the_address_with_the_token_leads_to_the_page(server: Server) -> None:
    status, _, headers = server.ask("GET", f"/?token={TOKEN}", headers={"Cookie": None})
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"]
    assert cookie.startswith(f"{server.cookie};")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    status, text, headers = server.ask("GET", "/")
    assert status == 200
    assert '<meta name="bentpipe-server"' in text
    assert headers["x-frame-options"] == "DENY"
    assert server.ask("GET", "/app.js")[1] == "// script"


@pytest.mark.parametrize(
    ("request_line", "headers", "status"),
    [
        (("GET", "/?token=wrong"), {"Cookie": None}, 403),
        (("GET", "/"), {"Cookie": None}, 403),
        (("GET", "/api/file"), {"Cookie": "bentpipe-1=secret"}, 403),
        (("GET", "/app.js"), {"Cookie": None}, 403),
        (("GET", "/"), {"Host": "evil.example"}, 421),
        (("PUT", "/api/file"), {"Origin": "http://evil.example"}, 403),
        (("PUT", "/api/file"), {"Origin": None}, 403),
        (("POST", "/api/jobs"), {"Origin": "null"}, 403),
        (("POST", "/api/jobs"), {"Content-Type": "text/plain"}, 415),
        (("POST", "/api/jobs"), {"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_others_are_refused(
    server: Server, request_line: tuple[str, str], headers: dict[str, str | None], status: int
) -> None:
    got, _, _ = server.ask(*request_line, {"text": "changed"}, headers=headers)
    assert got == status
    assert server.file.read_text() == SMALL


@pytest.mark.parametrize(
    "path",
    [
        "/../ship.toml",
        "/%2e%2e/ship.toml",
        "/..%2fship.toml",
        "/api/figures/../secret.svg",
        "/api/figures/karir1999/../../secret.svg",
        "/api/figures/%2e%2e/secret.svg",
        "/api/traces/../secret.svg",
        "/api/traces/..%2f..%2fetc/passwd",
        "/api/traces/%2fetc/passwd",
        "/api/traces/link",
        "/api/traces/pages",
        "//etc/passwd",
    ],
)
def test_a_path_does_not_leave_its_folder(server: Server, path: str) -> None:
    status, text, _ = server.ask("GET", path)
    assert status == 404
    assert "root:" not in text
    assert "secret" not in text


def test_figures_are_listed_and_shown(server: Server) -> None:
    _, text, _ = server.ask("GET", "/api/figures")
    assert json.loads(text) == {"figures": ["karir1999/figure-1.svg"]}
    status, text, headers = server.ask("GET", "/api/figures/karir1999/figure-1.svg")
    assert (status, text) == (200, "<svg></svg>")
    assert "default-src 'none'" in headers["content-security-policy"]


def test_trace_files_beside_the_scenario_are_read(server: Server) -> None:
    (server.file.parent / "traces").mkdir()
    (server.file.parent / "traces" / "rate.csv").write_text("time (s), rate (Mbit/s)\n0, 2\n")
    status, text, _ = server.ask("GET", "/api/traces/traces/rate.csv")
    assert (status, text.splitlines()[1]) == (200, "0, 2")
    assert server.ask("GET", "/api/traces/traces/rate.csv", headers={"Cookie": None})[0] == 403
    with (server.file.parent / "long.csv").open("wb") as long:
        long.truncate((64 << 20) + 1)
    assert server.ask("GET", "/api/traces/long.csv")[0] == 400


def test_the_file_is_saved_and_watched(tmp_path: Path) -> None:
    with running(tmp_path) as own:
        assert json.loads(own.ask("GET", "/api/file")[1]) == {"name": "ship.toml", "text": SMALL}
        changed = SMALL.replace("5 s", "6 s")
        assert own.ask("PUT", "/api/file", {"text": changed})[0] == 200
        assert own.file.read_text() == changed
        connection = http.client.HTTPConnection("127.0.0.1", own.port, timeout=30)
        connection.request("GET", "/api/watch", headers={"Cookie": own.cookie})
        response = connection.getresponse()
        assert response.readline() == b": watching\n"
        own.file.write_text(SMALL)
        response.readline()
        event = response.readline().decode()
        assert json.loads(event.removeprefix("data: ")) == {"text": SMALL}
        connection.close()


@pytest.mark.parametrize("raw", [b"", b"{", b"3", b"[]", b'{"text": 3}', b"\xff", b"[" * 100_000])
def test_what_is_not_a_request_is_refused(server: Server, raw: bytes) -> None:
    for method, path in [("PUT", "/api/file"), ("POST", "/api/jobs")]:
        status, text, _ = server.ask(method, path, raw=raw)
        assert status == 400, text
    assert server.file.read_text() == SMALL


def test_a_body_that_is_too_long_is_refused(server: Server) -> None:
    long = json.dumps({"text": "x" * (9 << 20)}).encode()
    assert server.ask("PUT", "/api/file", raw=long)[0] == 400
    assert server.file.read_text() == SMALL


def test_jobs_have_the_results_of_the_commands(server: Server) -> None:
    run = server.job(command="run", text=SMALL, set=["duration=4 s"], seed=3)["result"]
    assert run["duration_s"] == 4.0
    assert run["seed"] == 3
    predicted = server.job(command="predict", text=SMALL)["result"]
    assert predicted["flows"][0]["name"] == "download"
    refused = server.job(command="run", text=SMALL.replace('"1 Mbit/s"', "1"))
    assert "links.satellite.rate: expected a rate" in refused["refusal"]


@pytest.mark.parametrize(
    "request_",
    [
        {"command": "gateway", "text": SMALL},
        {"command": "run"},
        {"command": "run", "text": SMALL, "out": "/tmp/x"},
        {"command": "run", "text": SMALL, "set": ["--out=/tmp/x"] * 101},
        {"command": "run", "text": SMALL, "set": ["no equals sign"]},
        {"command": "run", "text": SMALL, "seed": "--out"},
        {"command": "run", "text": SMALL, "seed": -1},
        {"command": "predict", "text": SMALL, "seed": 1},
        ["run"],
    ],
)
def test_only_the_page_s_requests_are_run(request_: object) -> None:
    with pytest.raises(Refused):
        arguments_of(request_)


def test_a_setting_is_never_an_option() -> None:
    line, _ = arguments_of({"command": "run", "text": "", "set": ["--out=/tmp/x"]})
    assert line == ["run", "-", "--json", "--set=--out=/tmp/x"]


def test_a_cancelled_job_leaves_no_process(tmp_path: Path) -> None:
    endless = SMALL.replace('"5 s"', '"90000 s"').replace(', size = "20 kB"', "")

    async def cancel() -> list[str]:
        jobs = Jobs(tmp_path)
        task = asyncio.create_task(jobs.run(*arguments_of({"command": "run", "text": endless})))
        deadline = time.monotonic() + 30
        while not _children() and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return _children()

    assert asyncio.run(cancel()) == []


def _children() -> list[str]:
    """Return the processes of jobs that this process has started."""
    own = os.getpid()
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(own)], capture_output=True, text=True, check=False
    )
    return [line for line in listed.stdout.splitlines() if "bentpipe run -" in line]


def test_files_are_refused_in_one_line(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(RequestError, match=r"binary\.toml: not UTF-8 text"):
        ScenarioFile(binary).read()
    long = tmp_path / "long.toml"
    long.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(RequestError, match="longer than 1 MiB"):
        ScenarioFile(long).read()
    assert ScenarioFile(tmp_path / "new.toml").read() is None
    with pytest.raises(RequestError, match="no file"):
        ScenarioFile(None).save("")
    with pytest.raises(RequestError, match="directory"):
        ScenarioFile(tmp_path / "missing" / "x.toml").save("")


def test_ctrl_c_ends_the_command(tmp_path: Path) -> None:
    file = tmp_path / "ship.toml"
    file.write_text(SMALL)
    script = (
        "import sys, pathlib, bentpipe.serving.application as a\n"
        f"a.page_folder = lambda: pathlib.Path({str(tmp_path)!r})\n"
        "from bentpipe.cli import main\n"
        "sys.exit(main(['serve', sys.argv[1]]))\n"
    )
    (tmp_path / "index.html").write_text("<html><head></head></html>")
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(file)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process:
        address = process.stdout.readline()
        assert re.fullmatch(r"workbench: http://127\.0\.0\.1:\d+/\?token=[\w-]{32}\n", address)
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
    assert process.returncode in {0, 130}


def test_an_emulation_reports_while_it_runs(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The command's place is taken by one that reports twice, so that no root is needed.
    fake = (
        "import json, sys; sys.stdin.read()\n"
        "for at in (0.5, 1.0):\n"
        "    line = {'elapsed_s': at, 'delivered_bytes': {'download': int(at * 1e4)}}\n"
        "    print(json.dumps(line), file=sys.stderr, flush=True)\n"
        "print('a note', file=sys.stderr)\n"
        "print(json.dumps({'argv': sys.argv[1:]}))\n"
    )
    real = asyncio.create_subprocess_exec

    async def start(program: str, *words: str, **more: Any) -> asyncio.subprocess.Process:
        assert words[:2] == ("-m", "bentpipe")
        return await real(program, "-c", fake, *words[2:], **more)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    status, text, headers = server.ask("POST", "/api/jobs", {"command": "emulate", "text": SMALL})
    assert (status, headers["content-type"]) == (200, "application/x-ndjson")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["live"]["delivered_bytes"]["download"] for line in lines[:-1]] == [5000, 10_000]
    assert lines[-1] == {"result": {"argv": ["emulate", "-", "--json", "--live"]}}
