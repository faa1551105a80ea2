"""What can be wrong with a frame."""


class ProtocolError(Exception):
    """Bytes that a peer sent are not what their request code promises."""
