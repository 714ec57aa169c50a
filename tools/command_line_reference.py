#!/usr/bin/env python3
"""Write the reference of the command line in Markdown (on stdout) from the table of commands.

    tools/command_line_reference.py > docs/command-line.md

A test checks that the page equals this output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bentpipe.cli.commands import COMMANDS

if TYPE_CHECKING:
    from bentpipe.cli.declaring import Command, Parameter

INTRODUCTION = """# The command line

Made from the table of commands by `make docs`; do not edit.

`bentpipe COMMAND --help` prints the same. Options may precede or follow arguments. `bentpipe
--install-completion` installs completion for the shell, which also completes scenarios and keys.
`bentpipe-gateway` is `bentpipe gateway`.

| exit status | |
|---|---|
| 0 | The work is done. |
| 1 | The request was valid, and the work failed. |
| 2 | The request is wrong. One line says what was expected: [messages](errors.md). |
| 128 and more | A signal ended the command: 130 for Ctrl-C. Finished parts of a sweep are stored. |

With `--json`, standard output has one JSON object and nothing else. `BENTPIPE_TRACEBACK=1` shows
where an internal error, or an exception in a window rule of your own, was raised. `NO_COLOR=1`
turns colours off.
"""

# The page that explains a command.
PAGES = {
    "run": "tutorial.md",
    "emulate": "emulation.md",
    "gateway": "gateway.md",
    "compare": "emulation.md#compare-prediction-simulation-and-emulation",
    "predict": "predict.md",
    "advise": "advise.md",
    "report": "report.md",
    "evaluate": "evaluate.md",
    "fit": "fit.md",
    "reproduce": "reproduce.md",
    "sweep": "sweep.md",
    "explain": "scenario.md",
    "schema": "scenario.md",
}


def reference() -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *(_section(name, each) for name, each in COMMANDS.items())])


def _section(name: str, command: Command) -> str:
    lines = [f"## bentpipe {name}", "", command.help]
    if name in PAGES:
        lines[-1] += f" [Explanation]({PAGES[name]})."
    arguments = [each for each in command.parameters.values() if not each.option]
    usage = " ".join([f"bentpipe {name}", "[OPTIONS]", *(each.metavar or "" for each in arguments)])
    lines += ["", f"```\n{usage.strip()}\n```", ""]
    if command.parameters:
        lines += ["| | value | default | |", "|---|---|---|---|"]
        lines += [_row(each) for each in command.parameters.values()]
        lines.append("")
    if command.examples:
        examples = "\n".join(f"bentpipe {each}" for each in command.examples)
        lines += [f"```\n{examples}\n```", ""]
    return "\n".join(lines)


def _row(parameter: Parameter) -> str:
    text, default = parameter.help, ""
    # Help texts have the defaults that are no values, such as "one per core".
    if "[default: " in text:
        text, _, rest = text.partition(" [default: ")
        default = rest.rstrip("]")
    elif parameter.required:
        default = "required"
    elif parameter.default not in {None, False}:
        default = f"`{parameter.default}`"
    value = f"`{parameter.metavar}`" if parameter.option and parameter.metavar else ""
    if parameter.least is not None and parameter.most is not None and parameter.most < 1_000_000:
        text += f" From {parameter.least} to {parameter.most:,}."
    cells = (f"`{parameter.option or parameter.metavar}`", value, default, text)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    print(reference(), end="")
