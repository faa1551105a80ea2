"""The signature of a call of a RocketMQ 5 client: HmacSHA1 over the instant of the call, and nothing else of it.

Mirrors:
    `org.apache.rocketmq.client.java.rpc.Signature`.
"""

import hashlib
import hmac
from datetime import UTC, datetime

from nodes.protocol.acl_signature import SessionCredentials

ALGORITHM = "MQv2-HMAC-SHA1"
DATE_TIME = "x-mq-date-time"
_MS_PER_S = 1_000


def date_time_of(now_ms: int) -> str:
    """An instant as `x-mq-date-time` has it; the clients' zone is UTC."""
    return datetime.fromtimestamp(now_ms // _MS_PER_S, UTC).strftime("%Y%m%dT%H%M%SZ")


def authorization_of(credentials: SessionCredentials, date_time: str) -> str:
    """The value of `authorization` for a call at an instant."""
    key = credentials.secret_key.reveal().encode()
    digest = hmac.new(key, date_time.encode(), hashlib.sha1).hexdigest().upper()
    return f"{ALGORITHM} Credential={credentials.access_key}, SignedHeaders={DATE_TIME}, Signature={digest}"
