"""The entry point of commands, which handles Ctrl-C before anything else is imported.

Most of a short command's time is spent on imports. During imports, Python answers Ctrl-C with a
traceback. Therefore this module imports nothing before it has installed a handler.
"""

import os
import signal


def main(first: str = "") -> None:
    """Run the command line, or the command `first` with the remaining arguments, and exit."""
    # An ignored SIGINT, as in a shell's background jobs, stays ignored.
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, _end)
    import sys

    from bentpipe.cli import main as run

    try:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run([first, *sys.argv[1:]] if first else None)
    except KeyboardInterrupt:
        # Raised before the command line handles it, or afterwards.
        _end()


def gateway_main() -> None:
    """Run `bentpipe-gateway`, an alias of `bentpipe gateway`, and exit."""
    main("gateway")


def _end(*_: object) -> None:
    """End as Ctrl-C ends a command, by system calls only: nothing else may be loaded yet."""
    try:
        os.write(2, b"bentpipe: interrupted\n")
    finally:
        os._exit(130)
