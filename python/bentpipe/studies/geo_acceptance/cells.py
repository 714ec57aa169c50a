"""The transfers of geo-acceptance: each access with each window rule, window and gateway."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bentpipe.scenario import Scenario

_FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Access:
    """A satellite access, and the draft's target: 100 MB in `target_s` seconds.

    Rates are in bit/s. `loss` is the random packet loss of the satellite link in each direction.
    `upload` is the direction of the transfer.
    """

    name: str
    down_bps: int
    up_bps: int
    target_s: float
    loss: float = 0.0
    upload: bool = False


# The available text gives the target with losses, but not the loss rate: it is varied.
LOSSES: Final = (0.0001, 0.001, 0.01)
CLEAN: Final = Access(name="250/3 Mbit/s", down_bps=250_000_000, up_bps=3_000_000, target_s=7.0)
LOSSY: Final = tuple(
    replace(CLEAN, name=f"{CLEAN.name}, {loss:.2%} lost", target_s=10.0, loss=loss)
    for loss in LOSSES
)
MEDIUM: Final = Access(name="50/10 Mbit/s", down_bps=50_000_000, up_bps=10_000_000, target_s=20.0)
SMALL: Final = Access(name="10/2 Mbit/s", down_bps=10_000_000, up_bps=2_000_000, target_s=85.0)
SMALL_UP: Final = Access(
    name="10/2 Mbit/s, upload",
    down_bps=10_000_000,
    up_bps=2_000_000,
    target_s=420.0,
    upload=True,
)
ACCESSES: Final = (CLEAN, *LOSSY, MEDIUM, SMALL, SMALL_UP)

RULES: Final = ("reno", "cubic", "hybla", "bbr")
# Bytes in flight at most: Linux's default, which exceeds every bandwidth-delay product here.
DEFAULT_WINDOW: Final = 6 * 2**20
LARGE_WINDOW: Final = 64 * 2**20
WINDOWS: Final[Mapping[str, int]] = {"6 MiB": DEFAULT_WINDOW, "64 MiB": LARGE_WINDOW}
NO_GATEWAYS: Final = "none"
SPLIT: Final = "split"
GATEWAYS: Final = (NO_GATEWAYS, SPLIT)
INITIAL_WINDOWS: Final = (10, 100)
SEEDS: Final = tuple(range(1, 11))
_QUICK_SEEDS: Final = SEEDS[:3]
# With losses, the others are far above the target with any seed.
LOSS_TOLERANT: Final = ("hybla", "bbr")


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A transfer of 100 MB over an access.

    `rule`, `window` and `initial_window` (in segments) are those of the senders over the satellite:
    the hosts, or with "split" the gateways at both of its ends. Behind gateways, the hosts are
    current Linux.
    """

    access: Access
    rule: str = "cubic"
    window: int = DEFAULT_WINDOW
    gateways: str = NO_GATEWAYS
    initial_window: int = 10
    seed: int = 1

    def scenario(self) -> Scenario:
        """Return it as a scenario."""
        access = self.access
        keys: dict[str, object] = {
            "seed": self.seed,
            "links.satellite.forward.rate": f"{access.down_bps} bit/s",
            "links.satellite.return.rate": f"{access.up_bps} bit/s",
        }
        if access.loss:
            for way in ("forward", "return"):
                keys[f"links.satellite.{way}.errors.packet_loss_rate"] = access.loss
        if access.upload:
            keys |= {"flows.transfer.from": "client", "flows.transfer.to": "server"}
        tcp = {
            "congestion_control": self.rule,
            "send_buffer": f"{self.window} B",
            "receive_buffer": f"{self.window} B",
            "initial_window": f"{self.initial_window} segments",
        }
        if self.gateways == SPLIT:
            for gateway in ("hub", "terminal"):
                table = f"gateways.{gateway}"
                keys |= {f"{table}.kind": "split", f"{table}.facing": "satellite"}
                keys[f"{table}.memory"] = f"{4 * self.window} B"
                keys |= {f"{table}.tcp.{key}": value for key, value in tcp.items()}
        else:
            for host in ("server", "client"):
                keys |= {f"hosts.{host}.tcp.{key}": value for key, value in tcp.items()}
        return Scenario(path=_FOLDER / "access.toml").with_settings(keys)

    @property
    def name(self) -> str:
        """The name that distinguishes it from other transfers over the same access."""
        window = next(name for name, size in WINDOWS.items() if size == self.window)
        start = (
            "" if self.initial_window == INITIAL_WINDOWS[0] else f", {self.initial_window} at once"
        )
        return f"{self.rule}, {window}{', gateways' if self.gateways == SPLIT else ''}{start}"


def of(access: Access) -> list[Transfer]:
    """Return the transfers over an access."""
    return [
        Transfer(
            access=access,
            rule=rule,
            window=window,
            gateways=gateways,
            initial_window=initial_window,
        )
        for gateways in GATEWAYS
        for window in WINDOWS.values()
        for rule in RULES
        for initial_window in INITIAL_WINDOWS
    ]


def with_losses(access: Access, seed: int) -> list[Transfer]:
    """Return the transfers over an access with losses that may meet its target, with a seed."""
    return [
        Transfer(
            access=access,
            rule=rule,
            window=LARGE_WINDOW,
            initial_window=initial_window,
            seed=seed,
        )
        for rule in LOSS_TOLERANT
        for initial_window in INITIAL_WINDOWS
    ]


def every_cell(quick: bool) -> list[Transfer]:
    """Return every transfer; `quick` has the current initial window only, except for claims."""
    cells = [cell for access in ACCESSES for cell in of(access)]
    if quick:
        cells = [
            cell for cell in cells if cell.initial_window == INITIAL_WINDOWS[0] or _is_claimed(cell)
        ]
    seeds = _QUICK_SEEDS if quick else SEEDS
    cells += [cell for access in LOSSY for seed in seeds for cell in with_losses(access, seed)]
    return list(dict.fromkeys(cells))


def _is_claimed(cell: Transfer) -> bool:
    # The claims are about the fastest transfer of each access, which may have a large initial
    # window.
    return cell.gateways == NO_GATEWAYS and cell.window == LARGE_WINDOW
