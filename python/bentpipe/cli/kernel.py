"""`bentpipe kernel`: window rules as BPF programs in the running kernel."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bentpipe.cli.output import print_json
from bentpipe.cli.tables import Table
from bentpipe.errors import RequestError

if TYPE_CHECKING:
    from bentpipe.kernel_rules import KernelRule, RuleSettings

_ACTIONS: Final = ("list", "check", "load", "unload", "status")
# Bounds of a setting: those of the scenario file, and what the programs' numbers hold.
_RTT0_S: Final = (1e-3, 10.0)
_CAPACITY_BPS: Final = (1e3, 3.2e10)

_UNIT: Final = """\
[Unit]
Description=TCP window rule {name} in the kernel (bentpipe)
After=network-online.target
Wants=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={load}
ExecStop={unload}

[Install]
WantedBy=multi-user.target
"""


def kernel(
    *,
    action: str,
    rule: str | None,
    capacity: str | None,
    rtt0: str | None,
    initial_threshold: int | None,
    route: str | None,
    unit: bool,
    as_json: bool,
) -> int:
    """Carry out one action; return the exit status."""
    if action not in _ACTIONS:
        raise RequestError(f"{action}: expected {', '.join(_ACTIONS[:-1])} or {_ACTIONS[-1]}")
    if action in ("load", "unload") and rule is None:
        raise RequestError(f"kernel {action}: the name of a rule is missing, such as hybla")
    given = {
        "--capacity": capacity,
        "--rtt0": rtt0,
        "--initial-threshold": initial_threshold,
        "--route": route,
        "--unit": unit or None,
    }
    unused = [name for name, value in given.items() if value is not None]
    if action not in ("load", "check") and unused:
        raise RequestError(f"{unused[0]}: only with kernel load")
    if action == "list":
        _list(as_json=as_json)
    elif action == "status":
        _status(as_json=as_json)
    elif action == "unload":
        _unload(rule or "")
    else:
        from bentpipe.kernel_rules import RuleSettings, find_rule

        settings = RuleSettings(
            reference_rtt_s=_quantity(rtt0, "--rtt0", "25ms", "s", _RTT0_S),
            channel_capacity_bps=_quantity(
                capacity, "--capacity", "20Mbit/s", "bps", _CAPACITY_BPS
            ),
            initial_threshold=initial_threshold,
        )
        if action == "check":
            return _check(rule, settings, as_json=as_json)
        _load(find_rule(rule or ""), settings, route=route, unit=unit)
    return 0


def _quantity(
    text: str | None, option: str, example: str, base: str, bounds: tuple[float, float]
) -> float | None:
    from bentpipe import _native

    if text is None:
        return None
    parts = _native.number_and_unit(text)
    for name, unit_base, worth, per, _ in _native.units():
        if parts is not None and (name, unit_base) == (parts[1], base):
            value = float(parts[0]) * worth / per
            if bounds[0] <= value <= bounds[1]:
                return value
            raise RequestError(f"{option} {text}: out of range; expected a value such as {example}")
    raise RequestError(f"{option} {text}: expected a value such as {example}")


def _list(*, as_json: bool) -> None:
    from bentpipe.kernel_rules import RULES
    from bentpipe.kernel_rules.loading import available

    names = available()
    rules = list(RULES.values())
    others = [name for name in names if all(rule.kernel_name != name for rule in rules)]
    if as_json:
        rows = [
            {
                "name": rule.name,
                "kernel_name": rule.kernel_name,
                "available": rule.kernel_name in names,
            }
            for rule in rules
        ]
        print_json({"rules": rows, "others": others})
        return
    table = Table(headings=("rule", "in the kernel", "now", "settings"), left=frozenset({1, 2, 3}))
    for rule in rules:
        state = "available" if rule.kernel_name in names else "not loaded"
        table.add(rule.name, rule.kernel_name, state, _settings_of(rule))
    table.print()
    print(f"\nthe kernel's own: {', '.join(others) or 'none'}")


def _settings_of(rule: KernelRule) -> str:
    settings = ["--capacity"] if rule.needs_capacity else []
    if "hybla" in rule.name:
        settings.append("--rtt0")
    return ", ".join([*settings, "--initial-threshold"])


def _status(*, as_json: bool) -> None:
    from bentpipe.kernel_rules import pinned
    from bentpipe.kernel_rules.routes import destinations

    rows = [{**asdict(each), "routes": destinations(each.name)} for each in pinned()]
    if as_json:
        print_json({"loaded": rows})
        return
    if not rows:
        print("no rule is loaded by bentpipe")
        return
    table = Table(headings=("rule", "connections", "routes"), left=frozenset({2}))
    for row in rows:
        table.add(row["name"], str(row["users"]), ", ".join(row["routes"]) or "none")
    table.print()


def _check(rule: str | None, settings: RuleSettings, *, as_json: bool) -> int:
    """Print the requirements, and whether the kernel accepts the rules; 1 if not."""
    from bentpipe.errors import WorkError
    from bentpipe.kernel_rules import RULES, find_rule, requirements
    from bentpipe.kernel_rules.loading import check

    rows = [(each.name, each.met, each.detail, each.for_boot) for each in requirements()]
    if all(met or for_boot for _, met, _, for_boot in rows):
        for each in [find_rule(rule)] if rule else RULES.values():
            try:
                check(each, settings)
            except WorkError as error:
                rows.append((each.name, False, str(error), False))
            else:
                rows.append((each.name, True, "the kernel accepts the program", False))
    elif rule:
        find_rule(rule)
    if as_json:
        names = ("name", "met", "detail", "for_boot")
        print_json({"requirements": [dict(zip(names, row, strict=True)) for row in rows]})
    else:
        table = Table(headings=("", "", ""), left=frozenset({1, 2}), prose=True)
        for name, met, detail, _ in rows:
            table.add(name, "found" if met else "missing", detail)
        table.print()
    return int(not all(met or for_boot for _, met, _, for_boot in rows))


def _load(rule: KernelRule, settings: RuleSettings, *, route: str | None, unit: bool) -> None:
    from bentpipe.errors import WorkError
    from bentpipe.kernel_rules import pin, unpin
    from bentpipe.kernel_rules.routes import set_rule

    if unit:
        print(_unit(rule), end="")
        return
    pin(rule, settings)
    if route is not None:
        try:
            set_rule(route, rule.kernel_name)
        except (RequestError, WorkError):
            unpin(rule.kernel_name)
            raise
    where = f" on the route {route}" if route is not None else ""
    print(f"loaded {rule.kernel_name}{where}")


def _unit(rule: KernelRule) -> str:
    """Return a systemd unit that does what the command line says, at boot."""
    program = [sys.executable, "-m", "bentpipe"]
    # systemd has another working folder.
    words = [
        str(Path(word).resolve()) if word.endswith(".bpf.c") else word
        for word in sys.argv[1:]
        if word != "--unit"
    ]
    return _UNIT.format(
        name=rule.kernel_name,
        load=shlex.join([*program, *words]),
        unload=shlex.join([*program, "kernel", "unload", rule.kernel_name]),
    )


def _unload(name: str) -> None:
    from bentpipe.kernel_rules import unpin
    from bentpipe.kernel_rules.routes import restore

    kernel_name = name.removesuffix(".bpf.c").rpartition("/")[2].replace("-", "_")
    restored = restore(kernel_name)
    removed = unpin(kernel_name)
    routes = f"; restored the route {', '.join(restored)}" if restored else ""
    kept = f"; connections that keep it until they end: {removed.users}"
    users = kept if removed.users else ""
    print(f"unloaded {kernel_name}{routes}{users}")
