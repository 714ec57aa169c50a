#!/usr/bin/env python3
"""Write the Python reference in Markdown (on stdout) from the docstrings of public names.

    tools/api_reference.py > docs/api.md

A test checks that the page equals this output.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import re
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import bentpipe
from bentpipe import congestion, prediction, results

# The record types in a run's `summary` and `series`, and in a prediction.
RECORDS = (
    results.FlowResult,
    results.GroupResult,
    results.DirectionResult,
    results.GatewayResult,
    results.Series,
    prediction.Prediction,
    prediction.FlowPrediction,
    prediction.ModelAnswer,
)
# Native classes that callbacks of a window rule receive; the stub has their docstrings.
STUB = Path(bentpipe.__file__).with_name("_native.pyi")
GIVEN = ("Window", "Ack")

INTRODUCTION = """# The Python interface

Made from the docstrings by `make docs`; do not edit.

```python
import bentpipe

result = bentpipe.run("geo-consumer", settings={"hosts.server.tcp.congestion_control": "hybla"})
result                       # in a notebook: tables and the overview
result.flow().goodput_bps    # bit/s
result.link("satellite.forward").packets_dropped
result.plot()                # a matplotlib figure; sweeps, advice and predictions have one, too
result.to_pandas()           # a row for each flow; "groups", "links", "gateways", "series"
```
"""


def reference() -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    names = [name for name in bentpipe.__all__ if not name.startswith("_")]
    values = {name: getattr(bentpipe, name) for name in names}
    functions = [name for name, value in values.items() if inspect.isfunction(value)]
    classes = [name for name, value in values.items() if inspect.isclass(value)]
    parts += [_function(name, values[name], level=2) for name in functions]
    parts += [_class(name, values[name]) for name in classes if not _is_error(values[name])]
    parts += [_record(each) for each in RECORDS]
    parts.append(_callbacks())
    parts.append("## Errors\n")
    parts += [
        f"* `bentpipe.{name}`: {_text(values[name])}\n"
        for name in classes
        if _is_error(values[name])
    ]
    modules = [(name, value) for name, value in values.items() if isinstance(value, ModuleType)]
    parts += [_module(name, value) for name, value in modules]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _is_error(value: type) -> bool:
    return issubclass(value, BaseException)


def _function(name: str, function: Any, *, level: int) -> str:
    signature = _signature(function)
    return f"{'#' * level} {name}\n\n```python\n{name}{signature}\n```\n\n{_document(function)}\n"


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    # Annotations are strings, which `str` would quote.
    shown = [
        re.sub(r": '([^']*)'", r": \1", str(parameter))
        for name, parameter in signature.parameters.items()
        if name != "self"
    ]
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if inspect.Parameter.KEYWORD_ONLY in kinds and not any(each.startswith("*") for each in shown):
        first = next(
            place
            for place, parameter in enumerate(
                each for name, each in signature.parameters.items() if name != "self"
            )
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        )
        shown.insert(first, "*")
    returns = signature.return_annotation
    arrow = "" if returns is inspect.Signature.empty else f" -> {_plain(returns)}"
    line = f"({', '.join(shown)}){arrow}"
    if len(line) <= 88:
        return line
    return "(\n" + "".join(f"    {each},\n" for each in shown) + f"){arrow}"


def _plain(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _class(name: str, kind: type) -> str:
    lines = [f"## {name}\n", _document(kind), ""]
    for member, value in vars(kind).items():
        if member.startswith("_"):
            continue
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(function):
            lines.append(f"* `{member}{_short(function)}`: {_text(function)}")
        elif isinstance(value, property) or hasattr(value, "attrname"):
            getter = value.fget if isinstance(value, property) else value
            lines.append(f"* `{member}`: {_text(getter)}")
        elif isinstance(value, enum.Enum):
            lines.append(f"* `{member}`")
    return "\n".join(lines) + "\n"


def _record(kind: type) -> str:
    """Return a record's fields and their types."""
    fields = [f"`{each.name}: {_plain(each.type)}`" for each in dataclasses.fields(kind)]
    return f"## {kind.__name__}\n\n{_document(kind)}\n\nFields: {', '.join(fields)}.\n"


def _callbacks() -> str:
    """Return the callbacks of a user's window rule, and the objects that they receive."""
    rule = congestion.CongestionControl
    must, _, may = _document(rule).partition("\n\n")
    lines = ["## A window rule of your own\n", must, ""]
    for name in ("on_ack", "on_congestion"):
        function = getattr(rule, name)
        lines.append(f"* `{name}{_short(function)}`: {' '.join(_document(function).split())}")
    lines += ["", _callback_list(may)]
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name in GIVEN:
            lines += ["", f"### {node.name}", "", ast.get_docstring(node) or "", ""]
            lines += _members(node)
    return "\n".join(lines) + "\n"


def _callback_list(document: str) -> str:
    """Return a docstring with its indented definitions as a list."""
    written: list[str] = []
    for line in document.splitlines():
        if line.startswith("    "):
            written[-1] += f" {line.strip()}"
        else:
            written.append(f"* {line}:" if line.startswith("`") else line)
    return "\n".join(written)


def _members(node: ast.ClassDef) -> list[str]:
    """Return a stub class's attributes and properties, in order."""
    lines = []
    for each in node.body:
        if isinstance(each, ast.AnnAssign):
            lines.append(
                f"* `{ast.unparse(each.target)}`: {ast.unparse(each.annotation)}, may be set."
            )
        elif isinstance(each, ast.FunctionDef):
            lines.append(f"* `{each.name}`: {ast.get_docstring(each)}")
    return lines


def _short(function: Any) -> str:
    names = [name for name in inspect.signature(function).parameters if name not in {"self", "cls"}]
    return f"({', '.join(names)})"


def _module(name: str, module: ModuleType) -> str:
    lines = [f"## bentpipe.{name}\n", _document(module), ""]
    members = getattr(module, "__all__", ())
    lines += [f"* `{member}`: {_text(getattr(module, member))}" for member in members]
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    """Return the first paragraph of a docstring, on one line."""
    text = inspect.getdoc(value) or ""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def _document(value: Any) -> str:
    """Return a numpy docstring as Markdown: its sections as lists."""
    text = inspect.getdoc(value) or ""
    blocks = text.split("\n\n")
    written = []
    for block in blocks:
        head, _, rest = block.partition("\n")
        underline, _, body = rest.partition("\n")
        if underline and set(underline) == {"-"}:
            written.append(f"**{head}**\n\n{_items(body)}")
        elif block.startswith("    "):
            written.append(f"```python\n{textwrap.dedent(block)}\n```")
        else:
            written.append(block.replace("::", ":"))
    return "\n\n".join(written)


def _items(body: str) -> str:
    """Return a section's entries, each a name and its indented description, as a list."""
    items: list[str] = []
    for line in body.splitlines():
        if line.startswith(" "):
            items[-1] += f" {line.strip()}"
        else:
            items.append(f"* `{line}`:" if "\n    " in f"{body}\n" else line)
    return "\n".join(items)


if __name__ == "__main__":
    print(reference(), end="")
