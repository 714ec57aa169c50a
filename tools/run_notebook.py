#!/usr/bin/env python3
"""Run notebooks' cells one after the other, and store their outputs in the notebooks.

    tools/run_notebook.py docs/notebooks/*.ipynb

A cell's last expression is shown as Jupyter shows it: as HTML if it has any, a figure as an image,
else its text. Jupyter is not needed; the tests run the notebooks with this script.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any


def run_notebook(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with the present outputs of its cells."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            cells.append(cell)
            continue
        count += 1
        outputs = run_cell("".join(cell["source"]), names, count)
        cells.append({**cell, "execution_count": count, "outputs": outputs})
    return {**notebook, "cells": cells}


def run_cell(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Run a cell and return its outputs."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {count}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if value is not None:
        shown = {"output_type": "execute_result", "execution_count": count, "metadata": {}}
        outputs.append({**shown, "data": data_of(value)})
    return outputs


def data_of(value: Any) -> dict[str, str]:
    """Return a value's representations by media type."""
    data = {"text/plain": repr(value)}
    if hasattr(value, "savefig"):
        image = io.BytesIO()
        value.savefig(image, format="png", dpi=80, metadata={"Software": None})
        data["image/png"] = base64.b64encode(image.getvalue()).decode()
    elif hasattr(value, "_repr_html_") and (html := value._repr_html_()) is not None:
        data["text/html"] = html
    return data


def main() -> None:
    """Run the notebooks named on the command line, in place."""
    for name in sys.argv[1:]:
        path = Path(name)
        notebook = run_notebook(json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
