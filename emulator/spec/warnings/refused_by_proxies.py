"""Clients of RocketMQ 5 that a proxy with ACL 2.0 refuses, as far as a scenario shows it."""

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

from emulator.spec.model.proxies import ProxySpec, has_endpoint
from emulator.spec.model.scenario import Scenario
from emulator.spec.warnings.auth_at_start import tables_at
from emulator.spec.warnings.harmful_setting import HarmfulSetting
from emulator.spec.warnings.refused_by_accounts import with_known_secrets
from nodes.broker.tables.auth.auth_tables import AuthTables
from nodes.broker.tables.auth.errors import AuthenticationError, AuthError, AuthorizationError
from nodes.broker.tables.auth.evaluators import require_authentic, require_permission, require_username
from nodes.config.client5 import Client5Config
from nodes.protocol.acl_signature import SessionCredentials, authorization_of
from nodes.protocol.auth import UserType
from nodes.protocol.headers_proxy import CallMetadataHeader
from nodes.protocol.v2 import service
from nodes.protocol.v2.definition import Message, MessageQueue, Resource
from nodes.proxy.tables.authentication import CallAuthentication, authentication_of
from nodes.proxy.tables.authorization import contexts_of_call

_INSTANT = "20250101T000000Z"
_NO_USERS = "The authenticationMetadataProvider is not configured"
_NO_POLICIES = "The authorizationMetadataProvider is not configured"


def refused_by_proxies(scenario: Scenario, ips: Mapping[str, str]) -> Iterator[HarmfulSetting]:
    """Warnings about clients whose receives or sends a proxy refuses, by the users of the first broker of its cluster.

    Users and policies are those that a client finds when it starts: others may be created later.

    Args:
        ips: mapping node -> IP address.
    """
    scenario = with_known_secrets(scenario)
    for proxy in scenario.proxies:
        config = proxy.config
        brokers = [b for b in scenario.brokers if b.cluster == config.rocket_m_q_cluster_name and b.container is None]
        if not brokers or not config.has_auth:
            continue
        tables = cache(partial(tables_at, brokers[0], scenario))
        for names, at_ms, client, request in _calls(scenario, proxy.name):
            yield from _refused(proxy, tables(at_ms), {name: ips[name] for name in names}, client, request)


def _calls(scenario: Scenario, proxy: str) -> Iterator[tuple[tuple[str, ...], int, Client5Config, Any]]:
    """Names of the clients that know a proxy, when they start, their options, and what they call it for."""
    for group in scenario.consumers:
        if group.config5 is not None and has_endpoint(group.endpoints, proxy):
            for topic in group.topics:
                queue = MessageQueue(Resource(topic))
                yield (
                    group.names,
                    group.start_after_ms,
                    group.config5,
                    service.ReceiveMessageRequest(Resource(group.group), queue),
                )
    for producer in scenario.producers:
        if producer.config5 is not None and has_endpoint(producer.endpoints, proxy):
            for topic in producer.topics:
                request = service.SendMessageRequest((Message(Resource(topic)),))
                yield (producer.name,), producer.start_after_ms, producer.config5, request


def _refused(
    proxy: ProxySpec, tables: AuthTables, ips: Mapping[str, str], client: Client5Config, request: Any
) -> Iterator[HarmfulSetting]:
    """The warning if a call of clients is refused."""
    why: dict[str, list[str]] = {}
    for name, ip in ips.items():
        try:
            _check(proxy, tables, ip, client, request)
        except AuthError as error:
            why.setdefault(str(error), []).append(name)
    for problem, refused in why.items():
        call = type(request).__name__.removesuffix("Request")
        text = f"{proxy.name} with ACL 2.0 refuses their {call}: {problem}"
        yield HarmfulSetting("clients-refused-by-accounts", ", ".join(refused), text)


def _check(proxy: ProxySpec, tables: AuthTables, ip: str, client: Client5Config, request: Any) -> None:
    """Check a call as the proxy does.

    Raises:
        AuthError: it is refused.
    """
    config, claim = proxy.config, CallAuthentication()
    if config.authentication_enabled:
        if not config.authentication_metadata_provider:
            raise AuthenticationError(_NO_USERS)
        claim = _claim(client, tables)
        user = require_username(claim.username)
        require_authentic(user, tables.users.find(user), claim.content, claim.signature)
    if config.authorization_enabled:
        user = require_username(claim.username)
        found = tables.users.find(user)
        if found is None or found.type is not UserType.SUPER:
            if not config.authorization_metadata_provider:
                raise AuthorizationError(_NO_POLICIES)
            for context in contexts_of_call(request):
                require_permission(user, tables.acls.of_user(user), context, ip)


def _claim(client: Client5Config, tables: AuthTables) -> CallAuthentication:
    """What a client claims to be; a secret that is not known yet counts as that of the user."""
    if not client.access_key:
        return CallAuthentication()
    user, secret = tables.users.find(client.access_key), client.secret_key
    if not secret.is_known and user is not None:
        secret = user.password
    if not secret.is_known:
        return CallAuthentication(client.access_key)
    signed = authorization_of(SessionCredentials(client.access_key, secret), _INSTANT)
    return authentication_of(CallMetadataHeader(authorization=signed, date_time=_INSTANT))
