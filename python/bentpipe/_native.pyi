"""The simulator, written in Rust (crates/python)."""

import os
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__version__: str
# The commit that it was built from, empty if that isn't known.
__commit__: str

class ScenarioError(ValueError):
    """The scenario is wrong: one line with file, line, key and what was expected."""

class RunError(RuntimeError):
    """The run failed: one line that says why."""

class RunOutput:
    """A finished run."""

    @property
    def summary_json(self) -> str:
        """The object that `bentpipe run --json` prints."""

    @property
    def series(self) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64], str]]:
        """Probe name -> (times in seconds, values, unit)."""

    @property
    def cores(self) -> int:
        """The number of cores that the run used."""

    @property
    def undivided(self) -> str | None:
        """Why it used one core although more were requested."""

class Window:
    """The window that a congestion control moves, in bytes.

    A fraction of a byte is kept from one call to the next. One segment may be in flight
    with any window. `slow_start_threshold` is infinite as long as there is none.
    """

    congestion_window: float
    slow_start_threshold: float
    @property
    def segment(self) -> int:
        """Payload of a full segment."""

    @property
    def in_slow_start(self) -> bool:
        """Whether the window is below the threshold."""

class Ack:
    """An acknowledgment. Bytes and seconds."""

    @property
    def now_s(self) -> float:
        """The time."""

    @property
    def acknowledged(self) -> int:
        """Bytes newly acknowledged that are to count; 0 for a duplicate."""

    @property
    def delivered(self) -> int:
        """Bytes known to have reached the peer since the start, in order or not."""

    @property
    def in_flight(self) -> int:
        """Bytes in flight after this acknowledgment."""

    @property
    def rtt_s(self) -> float | None:
        """The round trip that this acknowledgment measured, if it did."""

    @property
    def smoothed_rtt_s(self) -> float | None:
        """The smoothed round-trip time."""

    @property
    def minimum_rtt_s(self) -> float | None:
        """The shortest round-trip time so far."""

def run(
    path: str | os.PathLike[str],
    *,
    text: str | None = None,
    seed: int | None = None,
    overrides: list[tuple[str, str]] = ...,
    pcap: list[tuple[str, str]] = ...,
    snap_length: int | None = None,
    default_probes: bool = False,
    controls: list[tuple[str, type]] = ...,
    progress: Callable[[float, float], None] | None = None,
    no_series: bool = False,
    take_records: Callable[[Any], None] | None = None,
    cores: int | None = None,
) -> RunOutput:
    """Simulate a scenario file, or `text` in its place; releases the GIL.

    `pcap` pairs a link's name with the file its packets go to, each cut to `snap_length` bytes.
    With `default_probes`, a scenario
    that names no probes gets those that the plots need. `controls` are congestion controls of the
    caller's own, by name. `progress` is called a few times a second with the simulated time and
    the duration, in seconds. With `no_series`, probes record nothing; `take_records` is called
    with what they have recorded since the last time, in the form of `RunOutput.series`, which is
    empty then. Raises ScenarioError, RunError.
    """

def emulate(
    path: str | os.PathLike[str],
    *,
    text: str | None = None,
    seed: int | None = None,
    overrides: list[tuple[str, str]] = ...,
    pcap: list[tuple[str, str]] = ...,
    snap_length: int | None = None,
    default_probes: bool = False,
    commands: list[tuple[str, list[str], bool]] = ...,
    ours: list[str] = ...,
    rules: dict[str, str] = ...,
    rule_obstacles: dict[str, str] = ...,
    controls: list[tuple[str, type]] = ...,
    progress: Callable[[float, float], None] | None = None,
    delivered: Callable[[float, list[tuple[str, int]]], None] | None = None,
) -> tuple[RunOutput, int | None]:
    """Run a scenario in real time, between TCP connections of the kernel's. Linux only.

    `commands` (host, words, whether it is waited for) run instead of the flows; the exit status of
    the one that was waited for is returned. The hosts in `ours` have the simulator's TCP, not the
    kernel's. `rules` has the names of window rules loaded into the kernel, by host.
    `rule_obstacles` has the reasons why others were not, by name. Raises ScenarioError, RunError.
    """

class Console(Protocol):
    """Standard streams and signals of a command."""

    def print(self, text: str) -> None:
        """Write text to standard output."""

    def log(self, line: str) -> None:
        """Write a line to standard error."""

    def handle_signals(self) -> None:
        """Have `take_request` report signals from now on."""

    def take_request(self) -> str | None:
        """Return what the oldest signal that was not taken yet requests: `reload` or `end`."""

def gateway(words: list[str], console: Console) -> int:
    """Run `bentpipe-gateway` with these words, and return its exit status. Linux only."""

def gateway_parameters() -> list[tuple[str, str, str, str, bool]]:
    """Return its parameters: name, option, placeholder, help, and whether it may be repeated."""

def gateway_obstacle() -> str | None:
    """Return a line that says why this machine can be no gateway, or None if it can."""

def emulation_obstacle() -> str | None:
    """Return a line that says why nothing can be emulated on this machine, or None if it can."""

def emulation_leftovers() -> int:
    """End what killed emulations have left running; return how many processes that were."""

def load(
    path: str | os.PathLike[str],
    *,
    text: str | None = None,
    overrides: list[tuple[str, str]] = ...,
    controls: list[tuple[str, type]] = ...,
) -> str:
    """Return the scenario, defaults filled in, as JSON. Raises ScenarioError."""

def orbit(
    path: str | os.PathLike[str],
    *,
    text: str | None = None,
    overrides: list[tuple[str, str]] = ...,
    controls: list[tuple[str, type]] = ...,
    at_s: float = 0.0,
) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return the geometry of a scenario's constellations, sites and paths.

    A summary as JSON, and tables: name -> column name -> numpy array, or list of text. The
    satellites and ground tracks are those at `at_s`. Raises ScenarioError.
    """

def constellations() -> list[tuple[str, str, str]]:
    """Return the published constellations: name, description and source."""

def variations() -> list[tuple[str, str, str]]:
    """Return the published variations of paths: name, description and source."""

def may_meet_errors(
    path: str | os.PathLike[str],
    *,
    text: str | None = None,
    overrides: list[tuple[str, str]] = ...,
    controls: list[tuple[str, type]] = ...,
) -> bool:
    """Return whether a packet may be lost to errors. Raises ScenarioError."""

def json_schema() -> str:
    """Return the JSON Schema of the scenario file."""

def results_schema() -> str:
    """Return the JSON Schema of the object that `bentpipe run --json` prints."""

def lists() -> dict[str, list[str]]:
    """Return the names that a scenario file may use, by kind ("congestion-controls", ...)."""

def kinds() -> str:
    """Return the properties of every window rule, queue, application and kind of gateway.

    A JSON object of the kinds of things ("window_rules", "queues", "applications", "gateways"),
    each an object of the properties by name. `bentpipe.kinds` has them as classes.
    """

def units() -> list[tuple[str, str, int, int, bool]]:
    """Return every unit of quantities.

    Its name; the base unit (s, bps, bytes, packets, segments); what it is worth of that, as a
    fraction; whether it comes in whole numbers only.
    """

def number_and_unit(text: str) -> tuple[str, str] | None:
    """Split "1.5 MB" into the number, as it is written, and its unit; None if it is no quantity."""

def key_lines(text: str) -> dict[tuple[str | int, ...], int] | None:
    """Return the line, from 1, of every key, table and array item of a TOML text, by its path.

    In the order of the text. None if it is no TOML.
    """

def capture_connections(
    path: str | os.PathLike[str], *, progress: Callable[[int], None] | None = None
) -> dict[str, Any]:
    """List the TCP connections of a capture (pcap or pcapng).

    Keys: `connections` (each with `ends`, `payload`, `segments`, `times_ns`, `handshakes`),
    `packets`, `others`, `other_bytes`, `cut`. `progress` is called with the bytes read so far.
    Raises ValueError if it is no capture, OSError if it cannot be read.
    """

def capture_segments(
    path: str | os.PathLike[str],
    connection: int,
    *,
    most: int,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Return the first segments of a connection in that list, at most `most`, as numpy columns.

    Raises ValueError if it is no capture, OSError if it cannot be read.
    """
