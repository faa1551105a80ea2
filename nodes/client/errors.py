"""What a client cannot do by itself, before or instead of asking a broker; follows `MQClientException`."""


class ClientError(Exception):
    """The client gave up without an answer of a broker that would say why."""


class NoRouteInfoError(ClientError):
    """There is no queue to send to: no nameserver knows the topic, or nobody may write to it."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"No route info of this topic: {topic}")
        self.topic = topic


class BrokerNotExistError(ClientError):
    """No master of a broker name is known."""

    def __init__(self, broker_name: str) -> None:
        super().__init__(f"The broker[{broker_name}] not exist")
        self.broker_name = broker_name
