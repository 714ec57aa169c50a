"""Measure how much likely predictions differ from runs: the margins of `predict`.

Predicts random networks (tests/python/random_networks.py), and simulates those with a prediction
that is marked as likely. Prints the deviation of the goodput for each kind of limit or estimate.
No test uses these seeds: the tests' are below 1,000,000.

Usage:

    python tools/prediction_margins.py [FIRST_SEED [COUNT]]
    python tools/prediction_margins.py pages [FIRST_SEED [COUNT]]

With `pages`, the networks are those of tests/python/random_pages.py, and the deviation is that of
the page load time.

A margin is the largest deviation, or the mean and four standard deviations of it where that is
more, rounded up to the next 5%. It is a share of the predicted value.
"""

from __future__ import annotations

import math
import os
import sys
from collections import defaultdict
from collections.abc import Callable
from multiprocessing import Pool
from pathlib import Path

import numpy as np

import bentpipe

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "python"))
from random_networks import random_network
from random_pages import page_network

FIRST_SEED, COUNT, PAGES = 1_000_000, 30_000, 2_000


def deviations(seed: int) -> list[tuple[str, float, int]]:
    """Return the kind and the deviation of each likely flow of a seed's network."""
    network = random_network(seed)
    likely = [flow for flow in bentpipe.predict(network).flows if not flow.doubts]
    if not likely:
        return []
    flows = bentpipe.run(network, no_probes=True).summary.flows
    got = {flow.name: flow.goodput_bps for flow in flows}
    found = []
    for flow in likely:
        value = flow.lowest_bps
        found.append((flow.lowest, got[flow.name] / value - 1.0, seed))
    return found


def page_deviations(seed: int) -> list[tuple[str, float, int]]:
    """Return the kind and the deviation of a seed's page load, where the model applies."""
    network = page_network(seed)
    (flow,) = bentpipe.predict(network).flows
    answer = next(each for each in flow.models if each.name == "http")
    if answer.transfer_time_s is None:
        return []
    (page,) = bentpipe.run(network, no_probes=True).summary.flows[0].extra["pages"]
    return [("page load", page["load_s"] / answer.transfer_time_s - 1.0, seed)]


def main(first: int, count: int, of: Callable[[int], list[tuple[str, float, int]]]) -> None:
    """Print a table."""
    by_kind: dict[str, list[tuple[float, int]]] = defaultdict(list)
    with Pool(min(2, os.cpu_count() or 1)) as pool:
        for found in pool.imap_unordered(of, range(first, first + count), chunksize=50):
            for kind, deviation, seed in found:
                by_kind[kind].append((deviation, seed))
    print("kind          flows     least   median  largest  mean + 4 sd  margin  seed of the worst")
    for kind, pairs in sorted(by_kind.items()):
        values = np.array([deviation for deviation, _ in pairs])
        sizes = np.abs(values)
        spread = float(sizes.mean() + 4.0 * sizes.std())
        margin = math.ceil(max(float(sizes.max()), spread) * 20.0) / 20.0
        worst = pairs[int(sizes.argmax())][1]
        print(
            f"{kind:12s} {len(values):6d} {values.min():+9.3f} {np.median(values):+8.3f} "
            f"{values.max():+8.3f} {spread:12.3f} {margin:7.2f}  {worst}"
        )


if __name__ == "__main__":
    of_pages = sys.argv[1:2] == ["pages"]
    arguments = [int(each) for each in sys.argv[2 if of_pages else 1 :]]
    first, count = arguments + [FIRST_SEED, PAGES if of_pages else COUNT][len(arguments) :]
    main(first, count, page_deviations if of_pages else deviations)
