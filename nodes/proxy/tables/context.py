"""What a proxy knows about a call besides its request.

Mirrors:
    `org.apache.rocketmq.proxy.common.ProxyContext`.
"""

from nodes.protocol.headers_proxy import CallMetadataHeader
from nodes.proxy.tables.errors import JavaExceptionError
from nodes.values import frozen

_LANGUAGES = (
    "JAVA",
    "CPP",
    "DOTNET",
    "PYTHON",
    "DELPHI",
    "ERLANG",
    "RUBY",
    "OTHER",
    "HTTP",
    "GO",
    "PHP",
    "OMS",
    "RUST",
    "NODE_JS",
)


@frozen
class ProxyContext:
    """The client of a call, and its deadline."""

    client_id: str
    language: str
    client_version: str
    remaining_ms: int | None
    """Until the deadline, when the call arrived; None: it has none."""
    remote_address: str
    """`ip:port` of the client."""

    @classmethod
    def of(cls, metadata: CallMetadataHeader, remote_address: str) -> "ProxyContext":
        """The context of a call."""
        return cls(
            metadata.client_id or "",
            metadata.language or "",
            metadata.client_version or "",
            metadata.remaining_ms,
            remote_address,
        )

    def require_language(self) -> None:
        """Refuse a client whose language has no code in RocketMQ.

        Raises:
            CallError: it has none.
        """
        if self.language not in _LANGUAGES:
            name = f"org.apache.rocketmq.remoting.protocol.LanguageCode.{self.language}"
            raise JavaExceptionError("IllegalArgumentException", f"No enum constant {name}")
