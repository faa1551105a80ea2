"""What a broker asks of other brokers in a producer's way."""

from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import AUTO_CREATE_TOPIC, Message
from nodes.protocol.properties import properties_to_text
from nodes.rpc.client import RpcClient
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.typed import BrokerError, invoke

_SEND_TIMEOUT_MS = 3_000
_DEFAULT_TOPIC_QUEUE_NUMS = 8
STORED_CODES = (0, 10, 11, 12)
"""Success, and the three ways of being stored with a reservation."""


class BrokerOuterApi:
    """Sends messages to other brokers.

    Mirrors:
        `org.apache.rocketmq.broker.out.BrokerOuterAPI#sendMessageToSpecificBroker`.
    """

    def __init__(self, client: RpcClient, nameservers: Nameservers) -> None:
        self._client = client
        self._nameservers = nameservers

    async def send_message_to_specific_broker(
        self, address: str | None, broker_name: str, message: Message, group: str
    ) -> int:
        """Send a message; without an address it goes to a nameserver, as every request to nobody does.

        Returns:
            The code with which it was stored.

        Raises:
            RemotingError: no answer.
            BrokerError: it was refused.
        """
        header = headers.SendMessageRequestHeaderV2(
            group,
            message.topic,
            AUTO_CREATE_TOPIC,
            _DEFAULT_TOPIC_QUEUE_NUMS,
            message.queue_id,
            message.sys_flag,
            message.born_timestamp,
            message.flag,
            properties_to_text(message.properties),
            message.reconsume_times,
            bname=broker_name,
        )
        code = RequestCode.SEND_MESSAGE_V2
        if address is None:
            answer = await self._nameservers.ask(code, header, message.body, timeout_ms=_SEND_TIMEOUT_MS)
        else:
            answer = await invoke(self._client, address, code, header, message.body, timeout_ms=_SEND_TIMEOUT_MS)
        if answer.code not in STORED_CODES:
            raise BrokerError(answer.code, answer.remark)
        return answer.code
