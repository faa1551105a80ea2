"""The accounts of ACL 1.0: what may be sent and consumed with which key, and from where."""

import re

from nodes.fields import TEXT, Rule, checked, flag
from nodes.secret import Secret, secret
from nodes.values import frozen

PERMS = ("DENY", "PUB", "SUB", "PUB|SUB", "SUB|PUB")
_KEY_CHARS_MIN = 7
_NUMBER = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_RANGE = rf"(?:\*|{_NUMBER}-{_NUMBER})"
_ONE = rf"{_NUMBER}(?:\.{_NUMBER}){{3}}"
_ADDRESS = re.compile(
    rf"\*|\*\.\*\.\*\.\*|{_ONE}(?:,{_ONE})*|(?:{_NUMBER}\.){{3}}\{{{_NUMBER}(?:,{_NUMBER})*\}}"
    rf"|(?:{_NUMBER}\.){{3}}{_RANGE}|(?:{_NUMBER}\.){{2}}{_RANGE}\.(?:{_RANGE}|{_NUMBER})"
    rf"|{_NUMBER}\.{_RANGE}\.(?:{_RANGE}|{_NUMBER})\.(?:{_RANGE}|{_NUMBER})"
)
_KEY = Rule(
    f"a text of {_KEY_CHARS_MIN} characters or more",
    lambda value: TEXT.holds(value) and len(value) >= _KEY_CHARS_MIN,
)
_ADDRESSES = "an IPv4 address, or several as 10.0.0.{1,2}, 10.0.0.1,10.0.0.2, 10.0.0.*, 10.0.1-9.*"


def is_white_address(value: object) -> bool:
    """Whether a text stands for addresses, as a white list has them."""
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


WHITE_ADDRESSES = Rule(
    f"a list, each {_ADDRESSES}", lambda value: isinstance(value, tuple) and all(map(is_white_address, value))
)
_WHITE_ADDRESS = Rule(f"{_ADDRESSES}, or empty", lambda value: value == "" or is_white_address(value))
_DEFAULT_PERM = Rule(f"one of {', '.join(PERMS)}, or empty", lambda value: value == "" or value in PERMS)
_RESOURCES = Rule(
    f'a list of texts such as "orders=PUB|SUB", each with one of {", ".join(PERMS)}',
    lambda value: isinstance(value, tuple) and all(map(_is_resource, value)),
)


def _is_resource(value: object) -> bool:
    name, equals, perm = value.partition("=") if isinstance(value, str) else ("", "", "")
    return bool(name.strip() and equals) and perm.strip() in PERMS


@frozen
class PlainAccessConfig:
    """One account of ACL 1.0, an entry of `plain_acl.yml`.

    Brokers of releases that have ACL 1.0 know it with `aclEnable`. 5.3.3 makes a user and policies of it, with
    `migrateAuthFromV1Enabled`.

    Mirrors:
        `org.apache.rocketmq.common.PlainAccessConfig` in 5.3.2;
        `org.apache.rocketmq.auth.migration.v1.PlainAccessConfig` in 5.3.3.
    """

    access_key: str = checked(_KEY)
    """Names the account in each request."""
    secret_key: Secret = secret(min_chars=_KEY_CHARS_MIN)
    """Signs each request, and is never sent, written or printed. The text of a file is shown as `***`; better is a
    reference, `{ env = "NAME" }` or `{ file = "PATH" }`, which is read when a run begins."""
    white_remote_address: str = checked(_WHITE_ADDRESS, "")
    """Requests with this access key from these addresses need no signature, and may do everything."""
    admin: bool = flag(default=False)
    """May do everything, and alone what changes topics, groups and options."""
    default_topic_perm: str = checked(_DEFAULT_PERM, "")
    """What it may do with topics that `topic_perms` does not name; empty: nothing."""
    default_group_perm: str = checked(_DEFAULT_PERM, "")
    """The same for consumer groups, of which SUB is needed."""
    topic_perms: tuple[str, ...] = checked(_RESOURCES, ())
    """What it may do with a topic: `orders=PUB|SUB`."""
    group_perms: tuple[str, ...] = checked(_RESOURCES, ())
    """The same for a consumer group: `billing=SUB`."""
