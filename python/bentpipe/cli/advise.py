"""`bentpipe advise`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bentpipe.advice import advise as find_advice
from bentpipe.advice.trials import WORTHWHILE
from bentpipe.advice.user_experience import MOST_LISTED
from bentpipe.advice.wording import SPELLED, full_resources, limited_by, usual_flow
from bentpipe.cli.output import WriteErrors, check_plot, print_json
from bentpipe.cli.progress import quiet_dask, simulations_progress
from bentpipe.cli.run_tables import apart
from bentpipe.cli.source import execute_files, find_scenario, told_apart
from bentpipe.cli.tables import Table, print_prose
from bentpipe.units import format_rate, format_seconds

if TYPE_CHECKING:
    from bentpipe.advice import Advice, Experience, FlowLimits, Remedy, RemedyExperience
    from bentpipe.advice.advisor import RemedyResult

# Remedies and combinations of remedies in the first table, without --all.
_MOST_REMEDIES: Final = 12
_MOST_COMBINATIONS: Final = 6


def advise(
    *,
    file: str,
    settings: Sequence[str],
    plot: Path | None,
    workers: int | None,
    dask: str | None,
    seeds: int,
    only: Sequence[str],
    without: Sequence[str],
    everything: bool,
    python: Sequence[Path],
    as_json: bool,
) -> None:
    """Find out what limits a scenario, simulate the remedies, print them by what they give."""
    if plot is not None:
        check_plot(plot)
    execute_files(python)
    scenario = find_scenario(file, settings)
    with told_apart(scenario, command="advise"), simulations_progress() as progress, quiet_dask():
        advice = find_advice(
            scenario,
            workers=workers,
            dask=dask,
            seeds=seeds,
            progress=progress,
            only=only,
            without=without,
        )
    errors = WriteErrors()
    if plot is not None:
        from bentpipe.plot.advice_plot import write_advice_plot

        with errors.kept(plot):
            write_advice_plot(advice, plot)
    if as_json:
        print_json(advice.as_json())
    else:
        _print(advice, everything=everything)
        if plot is not None and errors.first is None:
            print(f"\nwrote {plot}")
    errors.raise_first()


def _print(advice: Advice, *, everything: bool) -> None:
    added = "" if len(advice.flows) == 1 else ", all flows' goodput, added up"
    print(f"{advice.scenario}: {format_rate(advice.goodput_bps)}{added}, seed {advice.seed}\n")
    _print_flows(advice, everything=everything)
    helpful = [each for each in advice.remedies if everything or _helps(each)]
    shown = helpful if everything else _best(helpful)
    more = len(helpful) - len(shown)
    helpful = shown
    for line in full_resources(advice.flows):
        print()
        print_prose(line)
    experiences = _user_experience(advice)
    # A number is a remedy's, in whichever table.
    numbered = list(helpful)
    for _, better in experiences:
        if better.result not in numbered:
            numbered.append(better.result)
    print()
    if not helpful:
        print("None of what was tried gives 2% more.")
    else:
        overall = ("overall",) if advice.experiences else ()
        headings = ("", "goodput", "gain", *overall, "remedy", "who", "limited then by", "why")
        table = Table(
            headings=headings,
            left=frozenset(range(headings.index("remedy"), len(headings) - 1)),
            prose=True,
        )
        for number, each in enumerate(helpful, start=1):
            table.add(
                str(number),
                format_rate(each.goodput_bps),
                _gain(each),
                *((f"{each.overall_gain - 1.0:+.0%}",) if overall else ()),
                each.remedy.name,
                _who(each.remedy),
                _most(each.limits),
                each.remedy.why,
            )
        table.print()
        if more:
            print(f"{more:,} more remedies help: --all")
        if overall:
            print_prose(
                "overall: how much better the flows are served, each table counting once, by user "
                "experience or else by goodput"
            )
        if any(each.remedy.every_network for each in helpful):
            print_prose(
                "all networks: works only if every network on the path supports it, which the "
                "Internet does not; ranked last"
            )
    if experiences:
        print("\nUser experience, and the change of all flows' goodput:\n")
        table = Table(
            headings=("", "flow", "what", "now", "then", "goodput", "who", "remedy"),
            left=frozenset({1, 2, 6}),
            prose=True,
        )
        for experience, better in experiences:
            table.add(
                str(1 + numbered.index(better.result)),
                experience.flow,
                _spelled(experience),
                _value(experience, experience.value),
                _value(experience, better.value),
                f"{better.result.gain - 1.0:+.0%}",
                _who(better.result.remedy),
                better.result.remedy.name,
            )
        table.print()
    if numbered:
        print("\nSettings:")
        for number, each in enumerate(numbered, start=1):
            sets = " ".join(f"--set {shlex.quote(words)}" for words in each.sets)
            print(f"{number:>3}  {sets}")
    seeds = max([len(advice.seeds), *(len(each.gains) for each in numbered)])
    if seeds > 1 and numbered:
        first, last = advice.seed, (advice.seed + seeds - 1) % 2**64
        print()
        print_prose(
            f"Results depend on the seed: goodput is that of seed {first}, gains are medians over "
            f"the seeds {first} to {last} (lowest and highest beside them), or that of {first} "
            "where this seed was enough. A sweep shows more seeds."
        )
    useless = [
        each.remedy.name for each in advice.remedies if each not in numbered and not _helps(each)
    ]
    if useless:
        print()
        print_prose(f"less than 2% more: {', '.join(useless)}")
    for name, said in advice.refused.items():
        print_prose(f"not possible here: {name} ({said})")


def _helps(result: RemedyResult) -> bool:
    return result.gain >= WORTHWHILE or result.overall_gain >= WORTHWHILE


def _who(remedy: Remedy) -> str:
    return "all networks" if remedy.every_network else ", ".join(remedy.who)


def _print_flows(advice: Advice, *, everything: bool) -> None:
    """Print what limits the flows: one row each, or one for each kind where there are many."""
    flows, crowds = apart(advice.flows, everyone=everything)
    ways = ("data path", "used", "ACK path", "used", "limited by")
    if not advice.flows:
        print("No sender waits for anything: flows to groups have a fixed rate.")
    if flows:
        table = Table(headings=("flow", "goodput", *ways), left=frozenset({2, 4}), prose=True)
        for flow in flows:
            table.add(flow.name, format_rate(flow.goodput_bps), *_ways(flow), limited_by(flow))
        table.print()
    if crowds:
        if flows:
            print()
        headings = ("flows", "number", "goodput: median", *ways)
        table = Table(headings=headings, left=frozenset({3, 5}), prose=True)
        for name, members in crowds.items():
            usual = usual_flow(members)
            goodput = format_rate(usual.goodput_bps)
            table.add(name, f"{len(members):,}", goodput, *_ways(usual), limited_by(usual))
        table.print()
        print("--all shows every one")


def _ways(flow: FlowLimits) -> tuple[str, str, str, str]:
    return flow.downlink, f"{flow.downlink_used:.0%}", flow.uplink, f"{flow.uplink_used:.0%}"


def _best(ranked: Sequence[RemedyResult]) -> list[RemedyResult]:
    """Return the best single remedies and the best combinations, in their order."""
    combined = [each for each in ranked if each.remedy.is_combination][:_MOST_COMBINATIONS]
    single = [each for each in ranked if not each.remedy.is_combination][:_MOST_REMEDIES]
    return [each for each in ranked if each in combined or each in single]


def _user_experience(advice: Advice) -> list[tuple[Experience, RemedyExperience]]:
    """Return the best remedies of each measure of user experience.

    Combinations are listed only if they are better than each single remedy.
    """
    found = []
    for experience in advice.experiences:
        better = [each for each in experience.remedies if each.gain >= WORTHWHILE]
        single = [each for each in better if not each.result.remedy.is_combination]
        bar = WORTHWHILE * max((each.gain for each in single), default=1.0)
        combined = [
            each for each in better if each.result.remedy.is_combination and each.gain >= bar
        ]
        found += [(experience, each) for each in combined[:MOST_LISTED] + single[:MOST_LISTED]]
    return found


def _spelled(experience: Experience) -> str:
    return experience.what if experience.unit == "" else f"{experience.what}, median"


def _value(experience: Experience, value: float) -> str:
    return f"{value:.2f}" if experience.unit == "" else format_seconds(value / 1e3)


def _gain(result: RemedyResult) -> str:
    gain = f"{result.gain - 1.0:+.0%}"
    if len(result.gains) == 1:
        return gain
    lowest, highest = (f"{each - 1.0:+.0%}" for each in (min(result.gains), max(result.gains)))
    return f"{gain} ({lowest}, {highest})"


def _most(limits: Mapping[str, float]) -> str:
    for name, share in limits.items():
        return f"{SPELLED[name]} {share:.0%}"
    return "–"
