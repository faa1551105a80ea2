"""Names of options whose values are secrets: they are copied nowhere."""

import re

_SECRET = re.compile(
    r"(?:access|api|auth|private|signing)[_.-]?key|secret|passw(?:or)?d|passphrase|pwd|credential|token|signature"
    r"|(?<![a-z])[as]k(?![a-z])|initAuthenticationUser|GrpcExporterHeader",
    re.IGNORECASE,
)


def is_secret_name(name: str) -> bool:
    """Whether the value of an option of RocketMQ, or of one that it does not know, is a secret."""
    return _SECRET.search(name) is not None
