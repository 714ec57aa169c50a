"""A change that may help a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Party = Literal["server", "client", "gateway", "operator"]
# Parties that can change something, in the order in which they are listed.
PARTIES: Final[tuple[Party, ...]] = ("server", "client", "gateway", "operator")

Deployability = Literal["one party", "several parties", "every network"]


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A change to a scenario: `settings` are pairs of a key and its value, as `--set` takes them.

    Of the remedies of one `kind`, only one can be applied at a time. Those of a `family` among them
    are alike: where the best of them gives nothing, the others are not tried on top of another
    remedy. `who` are the parties that have to change something. `every_network` is true of a change
    that works only if every network on the path supports it.
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
        """Whose consent the change needs."""
        if self.every_network:
            return "every network"
        return "one party" if len(self.who) <= 1 else "several parties"

    def and_also(self, other: Remedy) -> Remedy:
        """Return both changes as one."""
        return Remedy(
            kind=f"{self.kind}, {other.kind}",
            name=f"{self.name} + {other.name}",
            why=self.why,
            settings=self.settings + other.settings,
            who=tuple(each for each in PARTIES if each in self.who + other.who),
            every_network=self.every_network or other.every_network,
        )
