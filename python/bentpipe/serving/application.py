"""The pages and requests that `bentpipe serve` answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from bentpipe.errors import RequestError
from bentpipe.serving.guard import Guard
from bentpipe.serving.jobs import Jobs, Refused, arguments_of

if TYPE_CHECKING:
    from bentpipe.serving.scenario_file import ScenarioFile

# Between two looks at the file.
_WATCH_S: Final = 0.5
# As crates/scenario/src/limits.rs has it.
_LONGEST_TRACE: Final = 64 << 20
# The page asks whether it has a server by this element.
_MARK: Final = '<meta name="bentpipe-server" content="1" />'


def page_folder() -> Path | None:
    """Return the folder of the built page, or None if it is not built."""
    folder = Path(__file__).parents[1] / "web"
    return folder if (folder / "index.html").is_file() else None


def application(
    *, pages: Path, file: ScenarioFile, figures: Path | None, token: str, port: int
) -> Guard:
    """Return the application.

    `figures` is the folder that `bentpipe reproduce` has written, if there is one.
    """
    jobs = Jobs(file.folder)

    async def index(_: Request) -> Response:
        html = (pages / "index.html").read_text("utf-8")
        return HTMLResponse(html.replace("</head>", f"  {_MARK}\n  </head>", 1))

    async def read(_: Request) -> Response:
        try:
            text = file.read()
        except RequestError as error:
            return JSONResponse({"error": str(error)}, 400)
        name = None if file.path is None else file.path.name
        return JSONResponse({"name": name, "text": text})

    async def save(request: Request) -> Response:
        given = await _json(request)
        if not isinstance(given, dict) or not isinstance(given.get("text"), str):
            return JSONResponse({"error": "expected the text of a scenario"}, 400)
        try:
            file.save(given["text"])
        except RequestError as error:
            return JSONResponse({"error": str(error)}, 400)
        return JSONResponse({"saved": True})

    async def run(request: Request) -> Response:
        try:
            line, text = arguments_of(await _json(request))
        except Refused as error:
            return JSONResponse({"error": str(error)}, 400)
        if line[0] == "emulate":
            # In real time: the page shows the goodput meanwhile.
            return StreamingResponse(_reports(jobs, line, text), media_type="application/x-ndjson")
        job = asyncio.create_task(jobs.run(line, text))
        gone = asyncio.create_task(_gone(request))
        await asyncio.wait({job, gone}, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        if not job.done():
            job.cancel()
            with suppress(asyncio.CancelledError):
                await job
            return Response(status_code=499)
        return JSONResponse(job.result())

    async def watch(_: Request) -> Response:
        return StreamingResponse(_changes(file), media_type="text/event-stream")

    async def list_figures(_: Request) -> Response:
        names = [] if figures is None else sorted(figures.glob("*/*.svg"))
        relative = [] if figures is None else [str(name.relative_to(figures)) for name in names]
        return JSONResponse({"figures": relative[:1000]})

    async def figure(request: Request) -> Response:
        known = (
            {}
            if figures is None
            else {str(name.relative_to(figures)): name for name in figures.glob("*/*.svg")}
        )
        path = known.get(request.path_params["name"])
        if path is None:
            return JSONResponse({"error": "no such figure"}, 404)
        # An image of the page: what it contains is not run.
        headers = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return FileResponse(path, media_type="image/svg+xml", headers=headers)

    async def trace(request: Request) -> Response:
        folder = file.folder.resolve()
        path = (folder / request.path_params["name"]).resolve()
        if not path.is_relative_to(folder) or not path.is_file():
            return JSONResponse({"error": "no such file"}, 404)
        if path.stat().st_size > _LONGEST_TRACE:
            return JSONResponse({"error": "longer than 64 MiB"}, 400)
        return FileResponse(path, media_type="application/octet-stream")

    routes = [
        Route("/", index),
        Route("/index.html", index),
        Route("/api/file", read, methods=["GET"]),
        Route("/api/file", save, methods=["PUT"]),
        Route("/api/watch", watch),
        Route("/api/traces/{name:path}", trace),
        Route("/api/jobs", run, methods=["POST"]),
        Route("/api/figures", list_figures),
        Route("/api/figures/{name:path}", figure),
        Mount("/", StaticFiles(directory=pages)),
    ]
    return Guard(Starlette(routes=routes), token=token, port=port)


async def _json(request: Request) -> Any:
    """Return the body of a request as data; None if it is not JSON."""
    try:
        return json.loads(await request.body())
    except (ClientDisconnect, RecursionError, ValueError):
        return None


async def _gone(request: Request) -> None:
    """Wait until the page has closed the connection."""
    while not await request.is_disconnected():
        await asyncio.sleep(0.2)


async def _reports(jobs: Jobs, line: list[str], text: str) -> AsyncIterator[str]:
    """Yield what a command reports, and its result, as lines of JSON. Ends it with the request."""
    reports: asyncio.Queue[Any] = asyncio.Queue()
    job = asyncio.create_task(jobs.run(line, text, reports.put_nowait))
    job.add_done_callback(lambda _: reports.put_nowait(None))
    try:
        while (report := await reports.get()) is not None:
            yield json.dumps({"live": report}) + "\n"
        yield json.dumps(job.result()) + "\n"
    finally:
        if not job.done():
            job.cancel()
            with suppress(asyncio.CancelledError):
                await job


async def _changes(file: ScenarioFile) -> AsyncIterator[str]:
    """Yield the file's text, as an event, whenever it changes."""
    last: str | None = None
    is_first = True
    while True:
        try:
            text = file.read()
        except RequestError:
            text = last
        if text != last and not is_first and text is not None:
            yield f"data: {json.dumps({'text': text})}\n\n"
        elif is_first:
            yield ": watching\n\n"
        last, is_first = text, False
        await asyncio.sleep(_WATCH_S)
