"""How consumer groups get the messages of topics: by pulling, unless somebody ordered otherwise.

Mirrors:
    `org.apache.rocketmq.broker.loadbalance.MessageRequestModeManager`.
"""

from nodes.protocol.bodies import MessageRequestModeSerializeWrapper, SetMessageRequestModeRequestBody
from nodes.protocol.model import RETRY_TOPIC_PREFIX, MessageRequestMode
from nodes.protocol.registry import decode_body, encode_body


class MessageRequestModeManager:
    """What was set for a group and a topic; only members that ask a broker for their share learn of it.

    Args:
        default_mode: of what nobody set.
        default_pop_share_queue_num: what goes with it if it is POP.
    """

    def __init__(
        self,
        default_mode: MessageRequestMode = MessageRequestMode.PULL,
        default_pop_share_queue_num: int = -1,
    ) -> None:
        self._default_mode = default_mode
        self._default_pop_share_queue_num = default_pop_share_queue_num
        self._modes: dict[str, dict[str, SetMessageRequestModeRequestBody]] = {}

    def set_mode(self, told: SetMessageRequestModeRequestBody) -> None:
        """Keep what somebody ordered."""
        self._modes.setdefault(told.topic, {})[told.consumer_group] = told

    def mode(self, topic: str, group: str) -> SetMessageRequestModeRequestBody:
        """What holds for a group and a topic; retry topics are pulled unless a slave copied something else."""
        told = self._modes.get(topic, {}).get(group)
        if told is not None:
            return told
        mode = MessageRequestMode.PULL if topic.startswith(RETRY_TOPIC_PREFIX) else self._default_mode
        share = self._default_pop_share_queue_num if mode is MessageRequestMode.POP else 0
        return SetMessageRequestModeRequestBody(topic, group, mode, share)

    def wrapper(self) -> MessageRequestModeSerializeWrapper:
        """The whole table."""
        return MessageRequestModeSerializeWrapper({topic: dict(modes) for topic, modes in self._modes.items()})

    def adopt(self, master: MessageRequestModeSerializeWrapper) -> None:
        """Have what the master has, and nothing else; there is no version, so this is done at every turn."""
        self._modes = {topic: dict(modes) for topic, modes in master.message_request_mode_map.items()}

    def encode(self) -> bytes:
        """The file of modes."""
        return encode_body(self.wrapper())

    def decode(self, content: bytes) -> None:
        """Take over a file.

        Raises:
            ProtocolError: the file is damaged.
        """
        self.adopt(decode_body(MessageRequestModeSerializeWrapper, content))
