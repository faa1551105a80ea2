"""A small scenario, and a cluster of it that its test closes."""

import textwrap
from pathlib import Path

import attrs

import emulator
from emulator.notebook.handle import ClusterHandle
from emulator.spec.model.scenario import Scenario
from emulator.testing import a_scenario

FIRST_CLUSTER = Path(__file__).parents[2] / "examples" / "first_cluster.toml"


def scenario(**given) -> Scenario:
    return attrs.evolve(a_scenario(consumers=2, nameservers=2, **given), run_for_ms=30_000)


def launched(runs: Path, **given) -> ClusterHandle:
    return emulator.launch(scenario(), runs=runs, **given)


def script(code: str) -> str:
    """A program that begins as this module does."""
    return textwrap.dedent(
        f"""
        import emulator
        FIRST_CLUSTER = {str(FIRST_CLUSTER)!r}
        """
    ) + textwrap.dedent(code)
