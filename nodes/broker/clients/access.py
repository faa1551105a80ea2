"""The check of every request that a broker with `aclEnable` gets."""

from nodes.broker.tables.clients.plain_access import AccessRequest, AclError, PlainPermissionManager
from nodes.host import Channel, Logger
from nodes.protocol.codes import ResponseCode
from nodes.protocol.command import Command

_EXCEPTION = "org.apache.rocketmq.acl.common.AclException"
_LOCAL = ":0"
"""End of the address of an operator on the broker's own machine: his verbs take no network and need no keys."""


class AclHook:
    """Refuses requests that the accounts do not allow, those of other brokers included.

    The answer is SYSTEM_ERROR with the exception in its remark, as of every exception of a hook, without the place in
    the source that RocketMQ adds.

    Mirrors:
        `BrokerController#initialAcl` and `NettyRemotingAbstract#buildProcessRequestHandler` of 5.3.2.
    """

    def __init__(self, log: Logger, access: PlainPermissionManager) -> None:
        self._log = log
        self._access = access

    def refusal(self, channel: Channel, request: Command) -> Command | None:
        """The answer to a refused request; None: it may pass."""
        address = channel.remote_address
        if address.endswith(_LOCAL):
            return None
        ip = address.rpartition(":")[0]
        try:
            self._access.validate(AccessRequest(ip, request.code, request.ext_fields, request.body, request.version))
        except AclError as error:
            self._log.warning("request refused", code=request.code, address=address, error=str(error))
            return request.answer(ResponseCode.SYSTEM_ERROR, f"{_EXCEPTION}: {error}")
        return None
