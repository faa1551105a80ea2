"""The accounts of a scenario: what does not fit together."""

from collections.abc import Iterator

from emulator.spec.model.scenario import Scenario
from emulator.spec.tables.mistakes import SpecError
from nodes.config.auth import AUTHENTICATION_METADATA
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


def violations_of_auth(scenario: Scenario) -> Iterator[SpecError]:
    """What keeps a broker with ACL 2.0 from its start."""
    known = {account.access_key for account in scenario.accounts}
    for i, broker in enumerate(scenario.brokers):
        if broker.container:
            continue
        config, path = broker.config, f"broker[{i}].options"
        named = {
            "initAuthenticationUser": config.init_authentication_user,
            "innerClientAuthenticationCredentials": config.inner_client_authentication_credentials,
        }
        for option, access_key in named.items():
            if access_key and access_key not in known:
                yield SpecError(f"{path}.{option}", "expected the access_key of an [[account]]")
        if any(named.values()) and not config.authentication_metadata_provider:
            yield SpecError(
                f"{path}.authenticationMetadataProvider", f"missing; expected {AUTHENTICATION_METADATA} to store users"
            )

    yield from _violations_of_proxies(scenario, known)


def _violations_of_proxies(scenario: Scenario, known: "set[str]") -> Iterator[SpecError]:
    for i, proxy in enumerate(scenario.proxies):
        access_key = proxy.config.inner_client_authentication_credentials
        if access_key and access_key not in known:
            key = f"proxy[{i}].options.innerClientAuthenticationCredentials"
            yield SpecError(key, "expected the access_key of an [[account]]")
