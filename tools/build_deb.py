#!/usr/bin/env python3
"""Pack the Debian package bentpipe-gateway around a program that is built.

    tools/build_deb.py PROGRAM FOLDER

The package has the program, its manual page, completions for shells, a systemd unit that is not
enabled, and a default configuration. Its maintainer is $DEBFULLNAME <$DEBEMAIL>, as for Debian's
own tools. All times in it are $SOURCE_DATE_EPOCH, or that of the last commit. Needs dpkg-deb.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from email.utils import formatdate
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEBIAN = ROOT / "packaging" / "debian"
SHARE = ROOT / "packaging" / "wheel" / "data" / "share"
NAME = "bentpipe-gateway"

# The field e_machine of an ELF file, and Debian's name.
ARCHITECTURES = {0x3E: "amd64", 0xB7: "arm64"}

# Where files go, and whether they may be executed.
FILES = {
    DEBIAN / f"{NAME}.service": f"lib/systemd/system/{NAME}.service",
    DEBIAN / "gateway.conf": "etc/bentpipe/gateway.conf",
    DEBIAN / "gateway.toml": "etc/bentpipe/gateway.toml",
    SHARE / f"bash-completion/completions/{NAME}": f"usr/share/bash-completion/completions/{NAME}",
    SHARE / f"fish/vendor_completions.d/{NAME}.fish": (
        f"usr/share/fish/vendor_completions.d/{NAME}.fish"
    ),
    SHARE / f"zsh/site-functions/_{NAME}": f"usr/share/zsh/vendor-completions/_{NAME}",
}

CONTROL = """\
Package: {name}
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {size}
Depends: libc6 (>= 2.17)
Recommends: iproute2
Section: net
Priority: optional
Description: TCP gateway for satellite links
 A gateway between two interfaces of this machine, as a scenario file of
 bentpipe describes it: it splits TCP connections, or acknowledges data
 locally, so that a long path does not slow them down. It can also stand for
 a satellite link in a laboratory.
 .
 The program needs neither Python nor the other parts of bentpipe.
"""

COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: bentpipe
Comment: The program contains these libraries in Rust, each with its licences:
{libraries}

Files: *
Copyright: The bentpipe maintainers
License: MIT or Apache-2.0

License: MIT
{mit}

License: Apache-2.0
 On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.
"""


def output(*command: str | Path) -> str:
    """Return what a command prints."""
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, cwd=ROOT).stdout


def build_time() -> int:
    """Return the time of all files, in seconds since 1970."""
    wanted = os.environ.get("SOURCE_DATE_EPOCH")
    return int(wanted or output("git", "log", "-1", "--format=%ct"))


def architecture(program: Path) -> str:
    """Return Debian's name of the processor that a program is compiled for."""
    header = program.read_bytes()[:20]
    machine = int.from_bytes(header[18:20], "little")
    if header[:4] != b"\x7fELF" or machine not in ARCHITECTURES:
        sys.exit(f"build_deb: {program}: not a program for {', '.join(ARCHITECTURES.values())}")
    return ARCHITECTURES[machine]


def maintainer() -> str:
    """Return who is to be named."""
    name = os.environ.get("DEBFULLNAME", "The bentpipe maintainers")
    return f"{name} <{os.environ.get('DEBEMAIL', 'maintainers@bentpipe.invalid')}>"


def indented(text: str) -> str:
    """Return a text as a field of many lines."""
    lines = (f" {line.rstrip() or '.'}" for line in text.strip().splitlines())
    return "\n".join(lines)


def libraries() -> str:
    """Return the crates that are linked into the program, with their licences."""
    command = ["cargo", "tree", "--package", "bentpipe-live", "--edges", "normal", "--locked"]
    listed = output(*command, "--prefix", "none", "--format", "{p}\t{l}").splitlines()
    crates = {tuple(line.removesuffix(" (*)").split("\t")) for line in listed}
    # The workspace's own have a path behind their version.
    others = [(name, licence) for name, licence in crates if "(" not in name]
    return "\n".join(f"  {name}: {licence}" for name, licence in sorted(others))


def compressed(path: Path, text: str) -> None:
    """Write a file as gzip does with --best --no-name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def stage(folder: Path, program: Path, version: str, time: int) -> None:
    """Lay the package's files out below a folder."""
    for source, place in FILES.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / place)
    binary = folder / "usr/sbin" / NAME
    binary.parent.mkdir(parents=True)
    shutil.copyfile(program, binary)
    page = (SHARE / "man/man8" / f"{NAME}.8").read_text("utf-8")
    compressed(folder / f"usr/share/man/man8/{NAME}.8.gz", page)
    documentation = folder / "usr/share/doc" / NAME
    changes = f"""\
{NAME} ({version}) unstable; urgency=medium

  * Version {version} of bentpipe; its change log has the details.

 -- {maintainer()}  {formatdate(time)}
"""
    compressed(documentation / "changelog.gz", changes)
    shutil.copyfile(ROOT / "docs" / "gateway.md", documentation / "gateway.md")
    mit = indented((ROOT / "LICENSE-MIT").read_text("utf-8"))
    text = COPYRIGHT.format(libraries=libraries(), mit=mit)
    (documentation / "copyright").write_text(text, "utf-8")
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path == binary else 0o644)


def describe(folder: Path, version: str, processor: str) -> None:
    """Write what dpkg reads: the control file, the configuration files, the script."""
    control = folder / "DEBIAN"
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    control.mkdir()
    fields = {
        "name": NAME,
        "version": version,
        "architecture": processor,
        "maintainer": maintainer(),
        "size": -(-size // 1024),
    }
    (control / "control").write_text(CONTROL.format(**fields), "utf-8")
    configuration = sorted(f"/{place}\n" for place in FILES.values() if place.startswith("etc/"))
    (control / "conffiles").write_text("".join(configuration), "utf-8")
    shutil.copyfile(DEBIAN / "prerm", control / "prerm")
    (control / "prerm").chmod(0o755)


def main() -> None:
    """Build the package, and print its path."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    version = manifest["workspace"]["package"]["version"]
    time, processor = build_time(), architecture(program)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / NAME
        folder.mkdir()
        stage(folder, program, version, time)
        describe(folder, version, processor)
        for path in [*folder.rglob("*"), folder]:
            os.utime(path, (time, time))
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(time)}
        command = ["dpkg-deb", "--root-owner-group", "--build", folder, out]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    print(out / f"{NAME}_{version}_{processor}.deb")


if __name__ == "__main__":
    main()
