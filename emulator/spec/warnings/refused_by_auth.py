"""ACL 2.0 in a scenario: what has no effect, and what brokers refuse at the start."""

from collections.abc import Iterator, Mapping
from functools import cache, partial

from emulator.spec.model.scenario import BrokerSpec, Scenario
from emulator.spec.warnings.auth_at_start import tables_at
from emulator.spec.warnings.harmful_setting import HarmfulSetting
from emulator.spec.warnings.refused_by_accounts import refused_clients, with_known_secrets
from nodes.broker.tables.auth.contexts import AuthRequest
from nodes.protocol.command import VERSION


def _without_effect(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """Options of ACL that their brokers ignore."""
    ignoring = [b.name for b in scenario.brokers if b.config.acl_enable and not b.config.knows_plain_acl]
    if ignoring:
        yield HarmfulSetting(
            "acl-enable-without-effect",
            ", ".join(ignoring),
            "5.3.3 has no ACL 1.0 and ignores aclEnable; use authenticationEnabled and authorizationEnabled, or a "
            'broker with release = "4.9"',
        )
    inside = [b.name for b in scenario.brokers if b.container and b.config.has_auth]
    if inside:
        yield HarmfulSetting(
            "auth-without-effect",
            ", ".join(inside),
            "brokers of a container ignore the options of ACL 2.0, in RocketMQ, too: every request passes",
        )
    silent = [
        proxy.name
        for proxy in scenario.proxies
        if proxy.config.inner_client_authentication_credentials
        and not proxy.config.enable_acl_rpc_hook_for_cluster_mode
    ]
    if silent:
        yield HarmfulSetting(
            "proxy-credentials-without-effect",
            ", ".join(silent),
            "innerClientAuthenticationCredentials sign nothing without enableAclRpcHookForClusterMode = true",
        )


def _refused_proxies(broker: BrokerSpec, scenario: Scenario) -> Iterator[HarmfulSetting]:
    """The warning if a broker refuses what proxies send it, since they do not sign."""
    unsigned = [
        proxy.name
        for proxy in scenario.proxies
        if broker.config.authentication_enabled
        and not (
            proxy.config.enable_acl_rpc_hook_for_cluster_mode and proxy.config.inner_client_authentication_credentials
        )
    ]
    if unsigned:
        yield HarmfulSetting(
            "proxies-refused-by-accounts",
            ", ".join(unsigned),
            f"they sign nothing, and {broker.name} with ACL 2.0 refuses all that they send it, so that they do not "
            "start (issue 9958); set enableAclRpcHookForClusterMode and innerClientAuthenticationCredentials",
        )


def refused_by_auth(scenario: Scenario, ips: Mapping[str, str]) -> Iterator[HarmfulSetting]:
    """Warnings about clients and brokers that brokers with ACL 2.0 refuse, and about options without effect.

    Users and policies are those that a client finds when it starts: others may be created later.

    Args:
        ips: mapping node -> IP address.
    """
    yield from _without_effect(scenario)
    scenario = with_known_secrets(scenario)
    for broker in scenario.brokers:
        if broker.container is None and broker.config.has_auth:
            yield from _refused_by(broker, scenario, ips)


def _refused_by(broker: BrokerSpec, scenario: Scenario, ips: Mapping[str, str]) -> Iterator[HarmfulSetting]:
    tables = cache(partial(tables_at, broker, scenario))

    def validate(ip: str, code: int, fields: Mapping[str, str], at_ms: int) -> None:
        tables(at_ms).evaluate(AuthRequest(ip, ip, code, fields, version=VERSION), 0)

    yield from refused_clients(scenario, ips, validate, f"{broker.name} with ACL 2.0")
    yield from _refused_proxies(broker, scenario)
    unsigned = [
        peer.name
        for peer in scenario.brokers
        if peer.broker_name == broker.broker_name
        and peer.name != broker.name
        and not (peer.container is None and peer.config.inner_client_authentication_credentials)
    ]
    if unsigned:
        yield HarmfulSetting(
            "brokers-refused-by-accounts",
            ", ".join(unsigned),
            f"without innerClientAuthenticationCredentials they sign nothing: {broker.name} with ACL 2.0 gives them no "
            "topics, groups and offsets as its slaves, no locks and messages as its peers",
        )
