"""The masters of other broker names, as a broker asks them for a client."""

import attrs

from nodes.broker.context import BrokerContext
from nodes.protocol.bodies import ClusterInfo
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID
from nodes.protocol.registry import decode_body
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingConnectError
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.typed import invoke, succeeded

_REFRESH_MS = 5_000
FORWARD_TIMEOUT_MS = 3_000
"""`forwardTimeout`."""


class OtherMasters:
    """Addresses from the cluster info of a nameserver, which are at most 5 s old.

    RocketMQ refreshes them every 5 s whether they are used or not; a broker here does when it needs one.

    Mirrors:
        `org.apache.rocketmq.broker.out.BrokerOuterAPI#refreshMetadata`,
        `org.apache.rocketmq.remoting.rpc.RpcClientImpl`.
    """

    def __init__(self, broker: BrokerContext, client: RpcClient, nameservers: Nameservers) -> None:
        self._broker = broker
        self._client = client
        self._nameservers = nameservers
        self._masters: dict[str, str] = {}
        self._refreshed_ms: int | None = None

    async def ask(self, broker_name: str, code: RequestCode, header: "attrs.AttrsInstance") -> Command:
        """The answer of the master of a broker name, whatever its code.

        Raises:
            RemotingError: there was none, or no master is known.
            BrokerError: the nameserver refused.
        """
        await self._refresh()
        address = self._masters.get(broker_name)
        if address is None:
            raise RemotingConnectError(f"no master of {broker_name} is known")
        return await invoke(self._client, address, code, header, timeout_ms=FORWARD_TIMEOUT_MS)

    async def _refresh(self) -> None:
        now_ms = self._broker.host.clock.now_ms()
        if self._refreshed_ms is not None and 0 <= now_ms - self._refreshed_ms < _REFRESH_MS:
            return
        answer = await self._nameservers.call(RequestCode.GET_BROKER_CLUSTER_INFO, timeout_ms=FORWARD_TIMEOUT_MS)
        info = decode_body(ClusterInfo, succeeded(answer).body)
        self._refreshed_ms = now_ms
        self._masters = {
            name: data.broker_addrs[MASTER_ID]
            for name, data in info.broker_addr_table.items()
            if MASTER_ID in data.broker_addrs
        }
