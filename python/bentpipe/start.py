"""The first steps of a command, in which Ctrl-C is to end it quietly, too.

Most of a short command's time is the importing of what it is made of, and Python answers Ctrl-C in
the middle of it with a traceback. So this imports nothing before it has seen to that.
"""

import os
import signal


def main(first: str = "") -> None:
    """Run the command line, or the command `first` with its words, and exit."""
    # One that is ignored, as behind a shell's `&`, stays so.
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
        # Before the command line listens, or after.
        _end()


def gateway_main() -> None:
    """Run `bentpipe-gateway`, which is `bentpipe gateway` by a name of its own, and exit."""
    main("gateway")


def _end(*_: object) -> None:
    """End as Ctrl-C ends a command; by the system's calls, for nothing else may be there yet."""
    try:
        os.write(2, b"bentpipe: interrupted\n")
    finally:
        os._exit(130)
