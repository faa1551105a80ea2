"""Names of the codes of answers: those of the remoting protocol, and those of statuses of RocketMQ 5."""

from nodes.protocol.codes import ResponseCode
from nodes.protocol.v2.enums import Code

STATUS_CODES = frozenset(map(int, Code))
"""All statuses with which a call of RocketMQ 5 is answered."""


def answer_code_name(code: int) -> str | None:
    """`SYSTEM_BUSY`, `ILLEGAL_DELIVERY_TIME`; None: RocketMQ has no such code."""
    for codes in (ResponseCode, Code):
        if code in tuple(codes):
            return str(codes(code).name)
    return None
