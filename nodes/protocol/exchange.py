"""What one request code means on the wire."""

import attrs

from nodes.protocol.headers_client import EmptyHeader


@attrs.frozen
class Exchange:
    """The four shapes of a request and its answer; None: there is none, `bytes`: the body is raw."""

    request_header: type = EmptyHeader
    request_body: type | None = None
    response_header: type = EmptyHeader
    response_body: type | None = None
