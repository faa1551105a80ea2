"""A campaign as frozen values: variants of one scenario, seeds, and what is run of them."""

import os
from collections.abc import Iterable
from enum import StrEnum
from itertools import product

import attrs

from emulator.spec import Scenario
from emulator.trace.schema import TraceLevel

BASELINE = "baseline"
"""Name of the variant that is the scenario as it stands, unless the campaign gives it another one."""
BETWEEN = "."
"""Stands between the name of a variant and that of its condition."""
TIMEOUT_MS = 300_000
"""Wall time of one run, by default."""


class Keep(StrEnum):
    """Which traces stay after their run has been judged."""

    FAILURES = "failures"
    """Those of all runs that are not valid."""
    ALL = "all"
    NONE = "none"


@attrs.frozen(order=True)
class Case:
    """One run of a campaign."""

    variant: str
    seed: int

    @property
    def name(self) -> str:
        """Name of its run directory, if its trace is retained."""
        return f"{self.variant}-seed{self.seed}"


@attrs.frozen
class Variant:
    """One scenario of a campaign; its seed is of no meaning."""

    name: str
    scenario: Scenario
    condition: str = ""
    """The condition in which it is run, with which its name ends; empty: the campaign has none."""

    def under(self, condition: str, scenario: Scenario) -> "Variant":
        """The variant in a condition, which made another scenario of it."""
        return Variant(f"{self.name}{BETWEEN}{condition}", scenario, condition)


@attrs.frozen(kw_only=True)
class Campaign:
    """Seeds times variants of one scenario, times the conditions in which each is run."""

    name: str
    """Name of its directory."""
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    """In ascending order."""
    keep: Keep = Keep.FAILURES
    timeout_ms: int = TIMEOUT_MS
    """Wall time of one run; a longer one is ended as hung."""
    level: TraceLevel = TraceLevel.FINDINGS
    """Which rows the traces have."""
    jobs: int | None = None
    """Runs at the same time on this machine; None: as many as this process has cores."""

    def cases(self) -> tuple[Case, ...]:
        """All cases, in the order in which they are run."""
        return cases([variant.name for variant in self.variants], self.seeds)


def cases(variants: Iterable[str], seeds: Iterable[int]) -> tuple[Case, ...]:
    """All variants of a seed before the next seed: so what is there early can be compared in pairs."""
    return tuple(Case(name, seed) for seed, name in product(seeds, variants))


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
