"""`bentpipe serve`."""

from __future__ import annotations

import secrets
import socket
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Final

from bentpipe.errors import RequestError, WorkError

_FIGURES: Final = "reproduction"


def serve(*, file: str | None, port: int, open_browser: bool) -> None:
    """Serve the workbench until Ctrl-C.

    Raises
    ------
    RequestError
        The file can't be read, or the port is in use.
    WorkError
        The page is not built.
    """
    import uvicorn

    from bentpipe.serving.application import application, page_folder
    from bentpipe.serving.scenario_file import ScenarioFile

    pages = page_folder()
    if pages is None:
        raise WorkError("the page is not built: run `make web` in bentpipe's source tree")
    scenario = ScenarioFile(None if file is None else _path(file))
    scenario.read()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError as error:
        raise RequestError(f"--port {port}: {error.strerror}") from None
    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(24)
    figures = Path(_FIGURES)
    app = application(
        pages=pages,
        file=scenario,
        figures=figures if figures.is_dir() else None,
        token=token,
        port=port,
    )
    address = f"http://127.0.0.1:{port}/?token={token}"
    print(f"workbench: {address}\nCtrl-C ends it", flush=True)
    if open_browser and sys.stdout.isatty():
        webbrowser.open(address)
    config = uvicorn.Config(
        app, log_level="error", access_log=False, lifespan="off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    # uvicorn raises Ctrl-C again once it has ended.
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


def _path(file: str) -> Path:
    """Return the path of a scenario file. A ready-made scenario is copied by `bentpipe new`."""
    path = Path(file)
    if path.suffix == "" and not path.exists():
        raise RequestError(f"{file}: no such file; `bentpipe new` writes one")
    return path
