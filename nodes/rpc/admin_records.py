"""Records of what administrators change, written where a node's server answers their requests."""

from collections.abc import Callable
from functools import partial

from nodes.beliefs import AdminRecord
from nodes.host import NO_CONNECTION, Channel, Host
from nodes.protocol.administration import ADMIN_REQUESTS, changes_of
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command

Record = Callable[[Command], None]
"""Called with the answer to a request."""


class AdminRecords:
    """Records each request by which an administrator has changed something.

    An operator's verb hands its requests to a node without a connection. They are faults, which have rows of their own.

    Args:
        broker_name: of the broker that is asked; empty: the node is none.

    Emits:
        An `AdminRecord` for each thing that the request names, when it is answered with SUCCESS.
    """

    def __init__(self, host: Host, broker_name: str) -> None:
        self._host = host
        self._broker_name = broker_name

    def begin(self, channel: Channel, request: Command) -> Record:
        """A request has arrived; returns what has to be called with its answer."""
        kind = ADMIN_REQUESTS[request.code]
        if channel.id == NO_CONNECTION or not kind.is_change(request):
            return _ignore
        return partial(self._record, channel.remote_address, request, self._host.clock.monotonic_ns())

    def _record(self, client: str, request: Command, began_ns: int, answer: Command) -> None:
        if answer.code != ResponseCode.SUCCESS:
            return
        name = RequestCode(request.code).name
        for item in changes_of(request):
            broker_name = item.broker_name or self._broker_name
            self._host.record(AdminRecord(name, item.topic, item.group, broker_name, client, began_ns, item.detail))


def _ignore(_answer: Command) -> None:
    """The request is no administrator's, or changes nothing."""
