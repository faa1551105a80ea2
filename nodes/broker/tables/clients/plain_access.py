"""ACL 1.0: which requests a broker with `aclEnable` refuses.

A request passes if its address is on the global white list. Otherwise it needs the access key of an account, and either
comes from that account's own white list or has its signature; then the account must be an admin's, or hold what the
request needs of each topic and group. A group stands under the name of its retry topic.

Mirrors:
    `org.apache.rocketmq.acl.plain.PlainAccessResource#parse`, `PlainPermissionManager#validate`,
    `PlainPermissionChecker`, `RemoteAddressStrategyFactory` and `org.apache.rocketmq.acl.common.Permission`, in 5.3.2:
    RIP-77 has removed them from 5.3.3, where `aclEnable` has no effect.
"""

import hmac
from collections.abc import Callable, Iterable, Mapping
from enum import IntFlag

from nodes.broker.tables.auth.errors import AclError
from nodes.config.accounts import PlainAccessConfig
from nodes.protocol.acl_signature import ACCESS_KEY, SIGNATURE, signature, signed_content
from nodes.protocol.errors import ProtocolError
from nodes.protocol.exchange import AclNeed, Exchange
from nodes.protocol.model import RETRY_TOPIC_PREFIX, HeartbeatData
from nodes.protocol.names import TRACE_TOPIC, parse_group, retry_topic
from nodes.protocol.registry import EXCHANGES, codes_where, decode_body
from nodes.values import frozen


class AccountPermission(IntFlag):
    """What an account may do with a topic or a group."""

    DENY = 1
    ANY = 2
    PUB = 4
    SUB = 8


_NOT_ANSWERED = (50, 51, 52)
"""Requests that no node of the emulator answers: they changed and showed the accounts."""
ADMIN_CODES = codes_where(lambda exchange: exchange.acl is AclNeed.ADMIN).union(_NOT_ANSWERED)
"""Requests that only admins may send."""
_NEEDING: Mapping[int, Exchange] = {
    code: exchange for code, exchange in EXCHANGES.items() if exchange.acl not in (AclNeed.NOTHING, AclNeed.ADMIN)
}
"""Request code -> the exchange of a request that needs something of a topic or a group."""
Needs = dict[str, AccountPermission]
"""Mapping topic, or retry topic of a group -> what a request needs of it."""


@frozen
class AccessRequest:
    """A request as far as its permission depends on it."""

    remote_ip: str
    code: int
    fields: Mapping[str, str]
    body: bytes | None = None
    version: int = 0


def needs_of(code: int, fields: Mapping[str, str], body: bytes | None) -> Needs:
    """What a request needs, as far as ACL 1.0 looks: pops and locks are not among it.

    Raises:
        ProtocolError: the body of a heartbeat cannot be read.
    """
    exchange = _NEEDING.get(code)
    if exchange is None:
        return {}
    if exchange.acl is AclNeed.SUB_ALL:
        return _of_heartbeat(body)
    group_field = exchange.group_fields[0] if exchange.group_fields else ""
    return _NEEDS[exchange.acl](fields.get(exchange.topic_field), fields.get(group_field))


def to_consume(group: str | None, topics: Iterable[str] = ()) -> Needs:
    """What consuming in a group needs."""
    name = None if group is None else retry_topic(group)
    return _needs((name, AccountPermission.SUB), *((topic, AccountPermission.SUB) for topic in topics))


def _to_send(topic: str | None) -> Needs:
    is_retry = topic is not None and topic.startswith(RETRY_TOPIC_PREFIX)
    return _needs((topic, AccountPermission.SUB if is_retry else AccountPermission.PUB))


def _of_heartbeat(body: bytes | None) -> Needs:
    consumers = decode_body(HeartbeatData, body).consumer_data_set
    each = (
        to_consume(consumer.group_name, (item.topic for item in consumer.subscription_data_set))
        for consumer in consumers
    )
    return {resource: perm for needs in each for resource, perm in needs.items()}


_NEEDS: Mapping[AclNeed, Callable[[str | None, str | None], Needs]] = {
    AclNeed.SEND: lambda topic, _group: _to_send(topic),
    AclNeed.PUB_TOPIC: lambda topic, _group: _needs((topic, AccountPermission.PUB)),
    AclNeed.SUB_TOPIC: lambda topic, _group: _needs((topic, AccountPermission.SUB)),
    AclNeed.SUB_GROUP: lambda _topic, group: to_consume(group),
    AclNeed.SUB_BOTH: lambda topic, group: _needs((topic, AccountPermission.SUB)) | to_consume(group),
}
"""Need -> what that is of the topic and the group that a request names."""


def _needs(*needed: tuple[str | None, AccountPermission]) -> Needs:
    return {resource: perm for resource, perm in needed if resource is not None}


def white_addresses(text: str) -> Callable[[str], bool]:
    """Whether an IPv4 address is among those that an entry of a white list stands for.

    Of `10.0.1-9.*` only the first range is looked at, as in RocketMQ: behind it everything matches.
    """
    if text in ("*", "*.*.*.*"):
        return lambda _: True
    if text.endswith("}"):
        begin, _, ends = text[:-1].partition("{")
        return frozenset(begin + end for end in ends.split(",")).__contains__
    if "*" not in text and "-" not in text:
        return frozenset(text.split(",")).__contains__ if text else lambda _: False
    parts = text.split(".")
    place = next(at for at, part in enumerate(parts) if at and ("*" in part or "-" in part))
    first, last = (0, 255) if parts[place] == "*" else map(int, parts[place].split("-"))
    head = parts[:place]

    def matches(ip: str) -> bool:
        own = ip.split(".")
        return len(own) == len(parts) and own[:place] == head and first <= int(own[place]) <= last

    return matches


class Account:
    """What an account may do."""

    def __init__(self, config: PlainAccessConfig) -> None:
        self._config = config
        self._is_white = white_addresses(config.white_remote_address)
        self._defaults = (_permission(config.default_topic_perm), _permission(config.default_group_perm))
        self._owned = {
            **{retry_topic(name): perm for name, perm in map(_resource, config.group_perms)},
            **dict(map(_resource, config.topic_perms)),
        }

    def require_signed(self, request: AccessRequest) -> bool:
        """Check who asks; returns whether the address alone is enough.

        Raises:
            AclError: the signature is missing or wrong.
        """
        if self._is_white(request.remote_ip):
            return True
        content = signed_content(request.fields, request.body, request.version)
        expected = signature(content, self._config.secret_key.reveal())
        if not hmac.compare_digest(expected.encode(), request.fields.get(SIGNATURE, "").encode("utf-8", "replace")):
            raise AclError(f"Check signature failed for accessKey={self._config.access_key}")
        return False

    def require_permitted(self, code: int, needs: Needs) -> None:
        """Check what is asked.

        Raises:
            AclError: the account lacks a permission.
        """
        if needs.get(TRACE_TOPIC) == AccountPermission.PUB or self._config.admin:
            return
        if code in ADMIN_CODES:
            access_key = self._config.access_key
            raise AclError(f"Need admin permission for request code={code}, but accessKey={access_key} is not")
        for resource, needed in needs.items():
            is_group = resource.startswith(RETRY_TOPIC_PREFIX)
            owned = self._owned.get(resource)
            if not _suffices(self._defaults[is_group] if owned is None else owned, needed):
                subject = f"group:{parse_group(resource)}" if is_group else f"topic:{resource}"
                raise AclError(f"No {'default ' if owned is None else ''}permission for {subject}")


class PlainPermissionManager:
    """The accounts that a broker knows, and the addresses that need none.

    Args:
        accounts: with different access keys.
        global_white_remote_addresses: from where all requests pass.
    """

    def __init__(self, accounts: Iterable[PlainAccessConfig], global_white_remote_addresses: Iterable[str]) -> None:
        self._accounts = {config.access_key: Account(config) for config in accounts}
        self._white = tuple(map(white_addresses, global_white_remote_addresses))

    def lets_in(self, remote_ip: str) -> bool:
        """Whether requests from an address need no account."""
        return any(is_white(remote_ip) for is_white in self._white)

    def validate(self, request: AccessRequest) -> None:
        """Check a request.

        Raises:
            AclError: it is refused.
        """
        try:
            needs = needs_of(request.code, request.fields, request.body)
        except ProtocolError as error:
            raise AclError(str(error)) from error
        if self.lets_in(request.remote_ip):
            return
        account = self.account(request.fields.get(ACCESS_KEY))
        if not account.require_signed(request):
            account.require_permitted(request.code, needs)

    def account(self, access_key: str | None) -> Account:
        """The account with an access key.

        Raises:
            AclError: there is none.
        """
        if access_key is None:
            raise AclError("No accessKey is configured")
        account = self._accounts.get(access_key)
        if account is None:
            raise AclError(f"No acl config for {access_key}")
        return account


NO_ACCOUNTS = PlainPermissionManager((), ())
"""Refuses everything."""


def _permission(text: str) -> AccountPermission:
    if text in ("", "DENY"):
        return AccountPermission.DENY
    made = AccountPermission(0)
    for word in text.split("|"):
        made |= AccountPermission[word]
    return made


def _resource(text: str) -> tuple[str, AccountPermission]:
    name, _, perm = text.partition("=")
    return name.strip(), _permission(perm.strip())


def _suffices(owned: AccountPermission, needed: AccountPermission) -> bool:
    if owned & AccountPermission.DENY:
        return False
    if needed & AccountPermission.ANY:
        return bool(owned & (AccountPermission.PUB | AccountPermission.SUB))
    return bool(owned & needed)
