"""Signatures by HmacSHA1: of a request, over its header and body; of a call of RocketMQ 5, over its instant alone.

Mirrors:
    `org.apache.rocketmq.acl.common.AclClientRPCHook`, `AclUtils` and `AclSigner`;
    `org.apache.rocketmq.client.java.rpc.Signature`.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Self

from nodes.protocol.command import VERSION
from nodes.secret import Secret
from nodes.values import frozen

ACCESS_KEY, SIGNATURE = "AccessKey", "Signature"
_UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
_V4_9_3 = 399
"""Clients up to this version mark a query by a unique key after they have signed it."""
_CALL_ALGORITHM = "MQv2-HMAC-SHA1"
_CALL_DATE_TIME = "x-mq-date-time"
_MS_PER_S = 1_000


@frozen
class SessionCredentials:
    """The keys with which a process signs its requests."""

    access_key: str
    secret_key: Secret

    def sign(self, fields: Mapping[str, str], body: bytes | None) -> dict[str, str]:
        """The header of a request with the signature."""
        return signed(fields, body, access_key=self.access_key, secret_key=self.secret_key.reveal())


class TranslatedBody(bytes):
    """A body that a codec has converted for a node; its sender signed the bytes in `as_sent`."""

    as_sent: bytes

    def __new__(cls, body: bytes, as_sent: bytes) -> Self:
        """The body as the node reads it, and as it arrived."""
        made = super().__new__(cls, body)
        made.as_sent = as_sent
        return made


def signed_content(fields: Mapping[str, str], body: bytes | None, version: int) -> bytes:
    """What is signed: the values of the header in the order of their names, then the body."""
    left_out = (SIGNATURE, _UNIQUE_KEY_QUERY) if version <= _V4_9_3 else (SIGNATURE,)
    values = "".join(fields[name] for name in sorted(fields) if name not in left_out)
    return values.encode("utf-8", "replace") + (getattr(body, "as_sent", body) or b"")


def signature(content: bytes, secret_key: str) -> str:
    """The signature of a request, in Base64."""
    return base64.b64encode(hmac.new(secret_key.encode(), content, hashlib.sha1).digest()).decode()


def signed(fields: Mapping[str, str], body: bytes | None, *, access_key: str, secret_key: str) -> dict[str, str]:
    """The header of a request of this release with an access key and the signature."""
    named = {**fields, ACCESS_KEY: access_key}
    return {**named, SIGNATURE: signature(signed_content(named, body, VERSION), secret_key)}


def date_time_of(now_ms: int) -> str:
    """An instant as `x-mq-date-time` has it; the clients' zone is UTC."""
    return datetime.fromtimestamp(now_ms // _MS_PER_S, UTC).strftime("%Y%m%dT%H%M%SZ")


def authorization_of(credentials: SessionCredentials, date_time: str) -> str:
    """The value of `authorization` for a call at an instant: nothing else of the call is signed."""
    key = credentials.secret_key.reveal().encode()
    digest = hmac.new(key, date_time.encode(), hashlib.sha1).hexdigest().upper()
    return f"{_CALL_ALGORITHM} Credential={credentials.access_key}, SignedHeaders={_CALL_DATE_TIME}, Signature={digest}"
