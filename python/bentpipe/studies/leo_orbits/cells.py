"""The simulations of leo-orbits: one scenario of its folder with settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bentpipe.scenario import Scenario

_FOLDER: Final = Path(__file__).parent

SEEDS: Final = tuple(range(1, 11))
_QUICK_SEEDS: Final = SEEDS[:3]
LATITUDES: Final = (0, 50, 60)
RULES: Final = ("reno", "cubic", "hybla", "bbr", "bbr3")
# Random losses in addition to those at handovers.
LOSSES: Final = (0.0, 0.01)
SATELLITES: Final = ("oneweb", "geo")
# The preset of a path's variation with losses, as measured in Australia.
MEASURED: Final = "starlink-australia-2024"
# What stands at the point of presence between a sender with CUBIC and the satellites.
SPLITTING: Final[Mapping[str, str]] = {
    "router": '{ kind = "router" }',
    "split": '{ kind = "split", facing = "satellite" }',
    "split with BBR": (
        '{ kind = "split", facing = "satellite", tcp = { congestion_control = "bbr" } }'
    ),
}
# Whether gateways at both ends of an office's satellite link split connections.
PAIRS: Final[Mapping[str, str]] = {
    "router": '{ kind = "router" }',
    "split": '{ kind = "split", facing = "satellite" }',
    "multiplexed": '{ kind = "split", facing = "satellite", multiplex = 2, warm_path = true }',
}
# What an operator does with a terminal's address when the gateway changes.
ADDRESSES: Final[Mapping[str, str]] = {
    "kept": '{ kind = "router" }',
    "changed": '{ kind = "nat", facing = "satellite" }',
}


@dataclass(frozen=True, kw_only=True)
class City:
    """A place by degrees north and east."""

    name: str
    latitude: float
    longitude: float


LONDON: Final = City(name="London", latitude=51.51, longitude=-0.13)
# Each with its distance from London on the great circle.
CITIES: Final = (
    City(name="Frankfurt", latitude=50.11, longitude=8.68),
    City(name="Istanbul", latitude=41.01, longitude=28.98),
    City(name="Baku", latitude=40.41, longitude=49.87),
    City(name="New York", latitude=40.71, longitude=-74.01),
    City(name="Singapore", latitude=1.35, longitude=103.82),
)


# Shells of the paths between cities: Handley's first phase, whose satellites are used from 40
# degrees on, and Starlink's as it was filed later.
HANDLEY: Final = "1,150 km"
FILED: Final = "550 km"
SHELLS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    HANDLEY: (
        (
            "constellations.leo",
            (
                '{ altitude = "1150 km", inclination = "53 deg", planes = 32, '
                "satellites_per_plane = 50, phasing = 5 }"
            ),
        ),
        ("sites.here.min_elevation", "40 deg"),
        ("sites.there.min_elevation", "40 deg"),
    ),
    FILED: (),
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A scenario file of the folder, and the keys that differ."""

    file: str
    settings: tuple[tuple[str, str], ...] = ()

    def scenario(self) -> Scenario:
        """Return it as a scenario."""
        return Scenario(path=_FOLDER / f"{self.file}.toml").with_settings(dict(self.settings))


def latitude(degrees: int, seed: int = 1) -> Cell:
    """Return the download and call at a latitude; the gateway is 300 km to the west or less."""
    places = tuple((f"sites.{site}.latitude", f"{degrees} deg") for site in ("office", "gateway"))
    return Cell(file="download", settings=(*places, ("seed", str(seed))))


def rule(name: str, loss: float, seed: int) -> Cell:
    """Return a download of 30 s at 50 degrees with a window rule and random losses."""
    return Cell(
        file="download",
        settings=(
            ("duration", "30 s"),
            ("hosts.server.tcp.congestion_control", name),
            ("links.satellite.forward.errors.packet_loss_rate", str(loss)),
            ("seed", str(seed)),
        ),
    )


def measured(name: str, seed: int, gateway: str = "router") -> Cell:
    """Return a download of 30 s with a window rule, over the measured variation and losses."""
    return Cell(
        file="download",
        settings=(
            ("duration", "30 s"),
            ("hosts.server.tcp.congestion_control", name),
            ("links.satellite.path.handover", "0 s"),
            ("links.satellite.path.variation", MEASURED),
            ("gateways.pop", SPLITTING[gateway]),
            ("seed", str(seed)),
        ),
    )


def address(kept: str) -> Cell:
    """Return a download and a call of four minutes, while the satellite's gateway changes."""
    return Cell(
        file="download",
        settings=(
            ("duration", "240 s"),
            ("sites.gateway.longitude", "4 deg"),
            ("sites.east", '{ latitude = "50 deg", longitude = "23 deg" }'),
            ("links.satellite.path.to", '["gateway", "east"]'),
            ("gateways.pop", ADDRESSES[kept]),
        ),
    )


def to_city(city: City, *, shell: str = HANDLEY) -> Cell:
    """Return the path from London to a city over inter-satellite links."""
    return Cell(
        file="mesh",
        settings=(
            *SHELLS[shell],
            ("sites.there.latitude", f"{city.latitude} deg"),
            ("sites.there.longitude", f"{city.longitude} deg"),
        ),
    )


def office(satellites: str, seed: int, gateways: str = "router") -> Cell:
    """Return the pages of an office over OneWeb or a geostationary satellite."""
    settings = [("links.satellite.path.constellation", satellites), ("seed", str(seed))]
    if gateways != "router":
        settings += [(f"gateways.{end}", PAIRS[gateways]) for end in ("pop", "terminal")]
    return Cell(file="office", settings=tuple(settings))


def ship() -> Cell:
    """Return the ship's day."""
    return Cell(file="ship")


def every_cell(quick: bool) -> list[Cell]:
    """Return every cell; `quick` has fewer seeds."""
    seeds = _QUICK_SEEDS if quick else SEEDS
    return [
        *(latitude(degrees) for degrees in LATITUDES),
        *(rule(name, loss, seed) for name in RULES for loss in LOSSES for seed in seeds),
        *(to_city(city, shell=shell) for shell in SHELLS for city in CITIES),
        *(measured(name, seed) for name in RULES for seed in seeds),
        *(
            measured("cubic", seed, gateway)
            for gateway in SPLITTING
            if gateway != "router"
            for seed in seeds
        ),
        *(address(kept) for kept in ADDRESSES),
        *(
            office(satellites, seed, gateways)
            for gateways in PAIRS
            for satellites in SATELLITES
            for seed in seeds
        ),
        ship(),
    ]
