"""The accounts of a scenario: what does not fit together."""

from collections.abc import Iterator

from emulator.spec.model.scenario import Scenario
from emulator.spec.tables.mistakes import SpecError
from nodes.config.client import ClientConfig
from nodes.config.client5 import Client5Config


def violations_of_accounts(scenario: Scenario) -> Iterator[SpecError]:
    """Two accounts of one access key, and keys of clients that lack the other half."""
    taken: dict[str, int] = {}
    for i, account in enumerate(scenario.accounts):
        first = taken.setdefault(account.access_key, i)
        if first != i:
            yield SpecError(f"account[{i}].access_key", f"expected another one than that of account[{first}]")
    configs: list[tuple[str, ClientConfig | Client5Config]] = [
        *((f"consumer[{i}]", spec.config5 or spec.config) for i, spec in enumerate(scenario.consumers)),
        *((f"producer[{i}]", spec.config5 or spec.config) for i, spec in enumerate(scenario.producers)),
    ]
    for path, config in configs:
        if bool(config.access_key) != bool(config.secret_key):
            lacking = "secretKey" if config.access_key else "accessKey"
            yield SpecError(f"{path}.options.{lacking}", "missing; expected both keys of an account, or none")
