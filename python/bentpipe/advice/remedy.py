"""A change that may help a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Party = Literal["server", "client", "gateway", "operator"]
# Parties that can change something, in the order of listings.
PARTIES: Final[tuple[Party, ...]] = ("server", "client", "gateway", "operator")

Deployability = Literal["one party", "several parties", "every network"]


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A change to a scenario: `settings` are pairs of a key and its value, as `--set` takes them.

    Remedies of one `kind` exclude each other. A `family` is a group of similar remedies of a kind:
    if the best of them adds nothing to another remedy, the others are not tried with it. `who` are
    the parties that have to change something. `every_network` marks a change that every network on
    the path must support.
    """

    kind: str
    name: str
    why: str
    settings: tuple[tuple[str, str], ...]
    family: str = ""
    who: tuple[Party, ...] = ()
    every_network: bool = False

    @property
    def is_combination(self) -> bool:
        """Whether it combines several remedies."""
        return ", " in self.kind

    @property
    def deployability(self) -> Deployability:
        """The parties that must agree to the change."""
        if self.every_network:
            return "every network"
        return "one party" if len(self.who) <= 1 else "several parties"

    def and_also(self, other: Remedy) -> Remedy:
        """Return the combination of both remedies."""
        return Remedy(
            kind=f"{self.kind}, {other.kind}",
            name=f"{self.name} + {other.name}",
            why=self.why,
            settings=self.settings + other.settings,
            who=tuple(each for each in PARTIES if each in self.who + other.who),
            every_network=self.every_network or other.every_network,
        )
