"""Truths on disk: a line of JSON per scenario, so that the code that names causes can change and truths stay."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import attrs

from studies.causes.drawing import Tables, random_scenario
from studies.causes.truth import Truth, Variants, executed, truths


@attrs.frozen
class Recorded:
    """The variants of one scenario."""

    seed: int
    """Of the drawing."""
    digest: str
    """Of the tables; a truth with another one is of another scenario."""
    variants: Variants

    def tables(self) -> Tables:
        """The scenario."""
        return random_scenario(self.seed)

    def truths(self) -> dict[str, Truth]:
        """As `studies.causes.truth.truths`."""
        return truths(self.tables(), self.variants)

    def line(self) -> str:
        """As JSON."""
        return json.dumps(attrs.asdict(self), separators=(",", ":"))


def digest_of(tables: Tables) -> str:
    """Of the tables of a scenario."""
    return hashlib.sha256(json.dumps(tables, sort_keys=True).encode()).hexdigest()[:16]


def record(seed: int) -> Recorded:
    """Run all variants of the scenario of a seed."""
    tables = random_scenario(seed)
    return Recorded(seed, digest_of(tables), executed(tables))


def recorded(path: Path) -> Iterator[Recorded]:
    """The truths in a file; those of other scenarios than the code draws now are left out."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            item = Recorded(**json.loads(line))
            if item.digest == digest_of(item.tables()):
                yield item
