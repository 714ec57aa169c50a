#!/usr/bin/env python3
"""Print the manual page bentpipe(1), made of the table of commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bentpipe import __version__
from bentpipe.cli.commands import COMMANDS

if TYPE_CHECKING:
    from bentpipe.cli.declaring import Command, Parameter

DESCRIPTION = """
A scenario is a TOML file that describes hosts, gateways, links and flows. bentpipe simulates it
packet by packet, evaluates closed-form models, and runs it in real time on Linux, with the same
protocol code. A scenario is named by its file, or by the name of a ready-made one, which
\\fBbentpipe list scenarios\\fR prints.
"""

ENDING = r"""
.SH EXIT STATUS
.TP
.B 0
The command did what was asked.
.TP
.B 1
The request was valid and the work failed.
.TP
.B 2
The request is wrong: an option, a file, or a key in it.
.TP
.B 128+N
Signal N ended the command, as a shell reports it: 130 after Ctrl\-C.
.PP
An error is one line on standard error.
.SH ENVIRONMENT
.TP
.B BENTPIPE_TRACEBACK
If it is set, an internal error is printed with the place where it arose.
.SH SEE ALSO
.BR bentpipe\-gateway (8)
"""


def escaped(text: str) -> str:
    """Return a text as roff's source."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def synopsis(name: str, command: Command) -> str:
    """Return the words of a command line: arguments and options."""
    words = [f"bentpipe {name}"]
    for each in command.parameters.values():
        if not each.option:
            metavar = each.metavar or ""
            words.append(metavar if each.required or "[" in metavar else f"[{metavar}]")
    words.append("[OPTIONS]")
    return " ".join(words)


def parameter(each: Parameter) -> Iterator[str]:
    """Yield a parameter's lines."""
    if each.option:
        value = f" \\fI{escaped(each.metavar)}\\fR" if each.metavar else ""
        yield f".TP\n\\fB{escaped(each.option)}\\fR{value}"
    else:
        yield f".TP\n\\fI{escaped((each.metavar or '').strip('[]'))}\\fR"
    text = each.help
    if each.default and "default" not in text:
        text += f" [default: {each.default}]"
    yield escaped(text)


def page() -> Iterator[str]:
    """Yield the page's lines."""
    yield f'.TH BENTPIPE 1 "" "bentpipe {__version__}"'
    yield ".SH NAME\nbentpipe \\- TCP over satellite and other long, asymmetric paths"
    yield ".SH SYNOPSIS\n\\fBbentpipe\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]"
    yield ".br\n\\fBbentpipe\\fR [\\fICOMMAND\\fR] \\fB\\-\\-help\\fR"
    yield ".br\n\\fBbentpipe \\-\\-version\\fR"
    yield f".SH DESCRIPTION\n{DESCRIPTION.strip()}"
    yield ".SH COMMANDS"
    for name, command in COMMANDS.items():
        if command.parses_itself:
            yield f".SS bentpipe {name}\n{escaped(command.help)}"
            yield f"Its options are those of\n.BR bentpipe\\-{name} (8)."
            continue
        yield f".SS {escaped(synopsis(name, command))}\n{escaped(command.help)}"
        for each in command.parameters.values():
            yield from parameter(each)
        yield ".PP\nExamples:\n.nf"
        yield from (f".RS\nbentpipe {escaped(each)}\n.RE" for each in command.examples)
        yield ".fi"
    yield ENDING.strip()


if __name__ == "__main__":
    print("\n".join(page()))
