"""Errors of malformed frames."""


class ProtocolError(Exception):
    """The bytes of a peer do not match their request code."""
