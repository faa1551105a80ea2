"""What guests ask that the emulator does not do, in words: what it is, what becomes of it, and what to do instead."""

import attrs

from emulator.guests.remoting.body_kinds import BODIES
from nodes.protocol.codes import RequestCode

_ABOUT: tuple[tuple[range, str], ...] = (
    (range(301, 303), "filter servers"),
    (range(1_001, 1_020), "controllers"),
)
"""Codes -> what they are for."""
_KNOWN = tuple(RequestCode)


@attrs.frozen
class ForeignProtocol:
    """A protocol other than RocketMQ's remoting."""

    begins: bytes
    """The first bytes on a connection."""
    name: str
    instead: str
    """What its user can do."""
    is_of_calls: bool = False
    """Whether a proxy speaks it."""


_REMOTING = "use a client of the remoting protocol (in Java the artifact rocketmq-client)"
_DIRECTLY = "connect without a proxy between"
FOREIGN_PROTOCOLS = (
    ForeignProtocol(b"\x16\x03", "TLS", "start the program without it (in Java -Dtls.enable=false)", is_of_calls=True),
    ForeignProtocol(
        b"PRI * HTTP/2", "gRPC over HTTP/2, as 5.x clients speak it to a proxy", _REMOTING, is_of_calls=True
    ),
    *(
        ForeignProtocol(method, "HTTP", _REMOTING)
        for method in (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"CONNECT ")
    ),
    ForeignProtocol(b"\r\n\r\n\x00\r\nQUIT\n", "the PROXY protocol", _DIRECTLY),
    ForeignProtocol(b"PROXY ", "the PROXY protocol", _DIRECTLY),
)


def foreign_protocol(first: bytes) -> ForeignProtocol | None:
    """The protocol of which these may be the first bytes; None: no known one."""
    return next((item for item in FOREIGN_PROTOCOLS if first.startswith(item.begins[: len(first)])), None)


def speaks_grpc(first: bytes) -> bool:
    """Whether these may be the first bytes of gRPC, behind TLS or not."""
    protocol = foreign_protocol(first)
    return protocol is not None and protocol.is_of_calls


def protocol_remark(protocol: ForeignProtocol, node: str) -> str:
    """What a guest spoke, what happened, and what to do."""
    return f"{protocol.name} to {node}: not emulated, the connection was closed; {protocol.instead}"


def is_answered(code: int) -> bool:
    """Whether a node of any kind answers requests of a code."""
    return code in BODIES


def reason(code: int) -> str:
    """Why no node answers requests of a code, such as `filter servers are not emulated`; empty: unknown."""
    about = next((subject for codes, subject in _ABOUT if code in codes), "")
    return f"{about} are not emulated" if about else ""


def remark_text(code: int, remark: str | None) -> str | None:
    """The remark of an answer REQUEST_CODE_NOT_SUPPORTED: what the node says, and what it is that is not emulated."""
    why = reason(code)
    return remark if not why or is_answered(code) else f"{remark}: {why}"


def request_text(code: int, node: str, *, oneway: bool = False) -> str:
    """What a guest asked, what it is for, and what happened."""
    name = f"{RequestCode(code).name} ({code})" if code in _KNOWN else f"request {code}"
    about = next((f", for {subject}" for codes, subject in _ABOUT if code in codes), "")
    if is_answered(code):
        why = "not for a node of this kind, in RocketMQ neither"
    else:
        why = "not emulated" if code in _KNOWN else "no request of RocketMQ 5.3.3"
    return f"{name} to {node}{about}: {why}; {'dropped' if oneway else 'answered REQUEST_CODE_NOT_SUPPORTED'}"
