"""`bentpipe doctor`: what this machine can do, and what is missing."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from bentpipe.cli.output import print_json
from bentpipe.cli.tables import Table
from bentpipe.processors import available_cores


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked for."""

    name: str
    found: bool
    detail: str
    needed_for: str


def doctor(*, as_json: bool) -> None:
    """Print what was found. It is no failure that something optional is missing."""
    findings = [*_required(), _dask(), *_witnesses(), *_live(), _kernel_rules()]
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings]})
        return
    table = Table(headings=("", "", "", ""), left=frozenset({1, 2}), prose=True)
    for finding in findings:
        mark = "found" if finding.found else "missing"
        # The first column stands beside each piece of the table in a narrow terminal.
        table.add(finding.name, mark, finding.detail, f"for {finding.needed_for}")
    table.print()


def _required() -> list[Finding]:
    findings = [
        Finding(
            name="Python",
            found=True,
            detail=platform.python_version(),
            needed_for="everything",
        ),
        _native(),
    ]
    for module, purpose in (
        ("numpy", "predict, reproduce, run --out"),
        ("matplotlib", "plots"),
        ("pyarrow", "sweep, Parquet files"),
        ("xarray", "sweeps' results as a Dataset"),
        ("jinja2", "reports"),
    ):
        found = importlib.util.find_spec(module) is not None
        detail = _distribution_version(module) if found else "make setup installs it"
        findings.append(Finding(name=module, found=found, detail=detail, needed_for=purpose))
    findings.append(
        Finding(
            name="cores", found=True, detail=str(available_cores()), needed_for="sweep, reproduce"
        )
    )
    return findings


def _native() -> Finding:
    purpose = "run, predict, reproduce"
    try:
        from bentpipe import _native
    except ImportError as error:
        detail = f"not built ({error}); make setup builds it"
        return Finding(name="simulator", found=False, detail=detail, needed_for=purpose)
    return Finding(name="simulator", found=True, detail=_native.__version__, needed_for=purpose)


def _dask() -> Finding:
    found = importlib.util.find_spec("distributed") is not None
    return Finding(
        name="dask.distributed",
        found=found,
        detail=_distribution_version("distributed") if found else "pip install 'bentpipe[dask]'",
        needed_for="sweep --dask, reproduce --dask",
    )


def _witnesses() -> list[Finding]:
    witnesses = []
    for name, program, package, purpose in (
        ("ns-2", "ns", "ns2", "the tests that compare with ns-2, make bench"),
        ("tshark", "tshark", "tshark", "the tests that let it read our captures"),
    ):
        path = shutil.which(program)
        detail = path or f"on Debian: the package {package}"
        witnesses.append(
            Finding(name=name, found=path is not None, detail=detail, needed_for=purpose)
        )
    return witnesses


def _live() -> list[Finding]:
    """Try what emulation needs: a namespace with a TUN device, and the kernel's TCPs."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    obstacle: str | None
    in_the_way: str | None
    try:
        from bentpipe import _native
    except ImportError:
        obstacle = in_the_way = "the simulator is not built"
    else:
        obstacle = _native.emulation_obstacle()
        in_the_way = _native.gateway_obstacle()
        if obstacle is not None and not root and _user_namespace_works():
            obstacle = None
    as_whom = "as root" if root else "in a user namespace"
    controls = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    try:
        names = controls.read_text(encoding="ascii").split()
    except OSError:
        names = []
    missing = sorted({"reno", "cubic", "bbr"} - set(names))
    detail = ", ".join(names) or "none"
    if missing:
        modules = " ".join(f"tcp_{name}" for name in missing)
        detail += f"; for more: modprobe --all {modules}"
    return [
        Finding(
            name="real time",
            found=obstacle is None,
            detail=obstacle or f"namespaces and TUN devices, {as_whom}",
            needed_for="emulate, compare, the tests that meet the kernel's TCP",
        ),
        Finding(
            name="a gateway",
            found=in_the_way is None,
            detail=in_the_way or "TUN devices, routes and rules; --check looks at interfaces",
            needed_for="bentpipe-gateway",
        ),
        Finding(
            name="the kernel's TCPs",
            found=not missing,
            detail=detail,
            needed_for="emulate, compare",
        ),
    ]


def _kernel_rules() -> Finding:
    """Look for what window rules in the kernel need."""
    from bentpipe.kernel_rules import obstacle

    missing = obstacle()
    return Finding(
        name="rules as BPF programs",
        found=missing is None,
        detail=missing or "BTF, libbpf and privileges; bentpipe kernel check tries each rule",
        needed_for="kernel load; hybla and others in emulate, compare",
    )


def _user_namespace_works() -> bool:
    """Return whether a user without root could emulate in a user namespace."""
    program = "from bentpipe import _native; raise SystemExit(_native.emulation_obstacle() or 0)"
    command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", program]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _distribution_version(module: str) -> str:
    from importlib.metadata import version

    return version(module)
