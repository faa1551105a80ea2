"""The refusal of a request by one of a handler's checks."""

from nodes.protocol.codes import ResponseCode


class RequestRefusedError(Exception):
    """A request is refused, with the code and the remark of the answer; nothing was changed."""

    def __init__(self, code: ResponseCode, remark: str) -> None:
        super().__init__(remark)
        self.code = code
        self.remark = remark
