"""Search over what karir1999 leaves open: delays, windows, losses and queues, for its ten numbers.

The paper gives no delay of the LANs. Its "64K" and "195K" are buffers; how much of them OPNET's
TCP uses as a window is open. Neither the queue at the satellite link nor losses are mentioned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bentpipe.studies.karir1999.cells import (
    GATEWAYS,
    LARGE_WINDOW,
    LARGE_WINDOWS,
    LINK_BPS,
    NETWORKS,
    SATELLITE,
    STATED_WINDOW,
    TERRESTRIAL,
    Cell,
    Download,
    paper,
)
from bentpipe.studies.karir1999.evidence import Evidence
from bentpipe.studies.open_settings import OpenSettings, Published, Row, Setting, committed, grid
from bentpipe.studies.study import read_claims

if TYPE_CHECKING:
    from bentpipe.results import RunResult

LAN_DELAYS_MS: Final = (1.0, 10.0, 20.0, 25.0, 30.0, 35.0, 37.5)
WINDOWS: Final = (16_384, 24_576, 26_624, 28_672, 30_720, 32_768, 49_152, STATED_WINDOW)
LARGE: Final = (40_960, 49_152, 52_000, 56_000, 60_000, STATED_WINDOW, 97_500, LARGE_WINDOW)
# Other explanations, each alone, over a coarser grid.
OTHERS: Final[tuple[Mapping[str, float], ...]] = (
    {"client_delay_ms": 25.0},
    {"queue_packets": 20},
    {"loss": 0.0005},
    {"loss": 0.001},
)

# The ten numbers, by the claim that states each, and the columns that are judged.
NUMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "terrestrial-capacity": ("terrestrial_share",),
    "satellite-500": ("satellite_kbps",),
    "large-windows-850": ("large_kbps",),
    "gateways-capacity": ("gateways_share",),
    "utilisation-like-terrestrial": ("gateways_over_terrestrial",),
    "rtt-terrestrial": ("rtt_terrestrial_ms",),
    "rtt-satellite": ("rtt_satellite_ms", "rtt_large_ms"),
    "rtt-gateways": ("rtt_gateways_ms",),
    "download-gateways": ("faster_than_satellite",),
    "download-large-windows": ("faster_than_large",),
}


def _settings() -> Sequence[Setting]:
    """Return the settings: delay and windows jointly, then other explanations."""
    plain = {"client_delay_ms": 1.0, "queue_packets": 100, "loss": 0.0}
    joint = grid(lan_delay_ms=LAN_DELAYS_MS, window=WINDOWS, large_window=LARGE)
    coarse = grid(
        lan_delay_ms=(1.0, 25.0, 37.5),
        window=(28_672, 32_768, STATED_WINDOW),
        large_window=(52_000, STATED_WINDOW, LARGE_WINDOW),
    )
    # Between the gateways, the same large window as between the hosts, and the stated one.
    found = [
        {**each, "middle_window": middle, **plain}
        for each in joint
        for middle in dict.fromkeys((each["large_window"], LARGE_WINDOW))
    ]
    found += [
        {**each, "middle_window": LARGE_WINDOW, **plain, **other}
        for other in OTHERS
        for each in coarse
    ]
    return found


def cells(setting: Setting) -> list[Cell]:
    """Return the downloads in the four networks, with a setting of the search."""
    return [download(setting, network) for network in NETWORKS]


def download(setting: Setting, network: str) -> Download:
    """Return the download in a network, with a setting of the search."""
    large = network == LARGE_WINDOWS
    return Download(
        network=network,
        window=int(setting["large_window" if large else "window"]),
        middle_window=int(setting["middle_window"]) if network == GATEWAYS else LARGE_WINDOW,
        lan_delay_ms=float(setting["lan_delay_ms"]),
        client_delay_ms=float(setting["client_delay_ms"]),
        queue_packets=int(setting["queue_packets"]),
        link_loss=float(setting["loss"]),
    )


@cache
def best() -> Row:
    """Return the committed row of the setting that gives most of the numbers."""
    return SEARCH.best(committed("karir1999"))[0]


def found(network: str) -> Download:
    """Return the paper's download in a network, with the setting that the search found."""
    return replace(download(best().setting, network), sampled=True)


def found_words() -> str:
    """Return the windows that the search found, in words for a caption."""
    setting = best().setting
    return (
        f"with those that the search finds: {setting['window']} B, and {setting['large_window']} B "
        "as large windows between the hosts"
    )


def measure_found(evidence: Evidence) -> Row:
    """Return the paper's numbers as this run measures them with the setting that was found."""
    setting = best().setting
    return _row(evidence, setting, found)


def measure_stated(evidence: Evidence) -> Row:
    """Return the paper's numbers as this run measures them with the windows as stated."""
    setting = {
        **best().setting,
        "window": STATED_WINDOW,
        "large_window": LARGE_WINDOW,
        "middle_window": LARGE_WINDOW,
    }
    return _row(evidence, setting, paper)


def _row(evidence: Evidence, setting: Setting, cell_of: Callable[[str], Cell]) -> Row:
    """Return the row of a setting from the sampled runs of this study."""
    results: dict[Cell, RunResult] = {
        download(setting, network): evidence.result(cell_of(network)) for network in NETWORKS
    }
    return SEARCH.judged(setting, results)


def measure(setting: Setting, outcomes: Mapping[Cell, RunResult]) -> dict[str, float]:
    """Return the paper's numbers as measured with a setting."""
    evidence = Evidence(outcomes)
    of = {network: download(setting, network) for network in NETWORKS}
    took = {network: evidence.end_s(cell) for network, cell in of.items()}
    bps = {network: evidence.link_bps(cell) for network, cell in of.items()}
    rtt = {network: evidence.rtt_ms(cell) for network, cell in of.items()}
    return {
        "terrestrial_share": bps[TERRESTRIAL] / LINK_BPS,
        "satellite_kbps": bps[SATELLITE] / 1e3,
        "large_kbps": bps[LARGE_WINDOWS] / 1e3,
        "gateways_share": bps[GATEWAYS] / LINK_BPS,
        "gateways_over_terrestrial": took[GATEWAYS] / took[TERRESTRIAL],
        "rtt_terrestrial_ms": rtt[TERRESTRIAL],
        "rtt_satellite_ms": rtt[SATELLITE],
        "rtt_large_ms": rtt[LARGE_WINDOWS],
        "rtt_gateways_ms": rtt[GATEWAYS],
        "faster_than_satellite": took[SATELLITE] / took[GATEWAYS],
        "faster_than_large": took[LARGE_WINDOWS] / took[GATEWAYS],
    }


def _published() -> dict[str, Published]:
    """Return the ten numbers with the expectations and tolerances of their claims."""
    claims = {claim.id: claim for claim in read_claims(Path(__file__).parent / "claims.toml")}
    return {
        id_: Published(
            columns=columns,
            expect=next(iter(claims[id_].expect.values())),
            tolerance=claims[id_].tolerance,
        )
        for id_, columns in NUMBERS.items()
    }


SEARCH: Final = OpenSettings(
    settings=_settings(), published=_published(), cells=cells, measure=measure
)
