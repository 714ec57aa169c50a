"""A change that might help a network."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A change to a scenario: `settings` are pairs of a key and its value, as `--set` has them.

    Of remedies of the same `kind`, one can be applied at a time. Those of a `family` among them do
    much the same: where one of them gives nothing, no other does.
    """

    kind: str
    name: str
    why: str
    settings: tuple[tuple[str, str], ...]
    family: str = ""

    def and_also(self, other: Remedy) -> Remedy:
        """Return both changes as one."""
        return Remedy(
            kind=f"{self.kind}, {other.kind}",
            name=f"{self.name} + {other.name}",
            why=self.why,
            settings=self.settings + other.settings,
        )
