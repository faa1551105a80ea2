"""An ordinary application under test, with the official Python client of RocketMQ 5.

pip install rocketmq-python-client==5.1.2
rmqemu up examples/guests/proxies.toml --exec python examples/guests/python/survives5.py
"""

import os
import subprocess
import threading
import time

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
)

TOPIC, PER_STEP = "Orders", 20


def rmqemu(*words: str) -> None:
    """Break the cluster, or heal it, as one would by hand."""
    subprocess.run(["rmqemu", "ctl", "--run", os.environ["RMQEMU_RUN"], *words], check=True)


class Billing(MessageListener):
    """Notes which orders have come."""

    def __init__(self) -> None:
        self.orders: dict[str, None] = {}
        self._lock = threading.Lock()

    def consume(self, message) -> ConsumeResult:
        """Take an order."""
        with self._lock:
            self.orders[message.body.decode()] = None
        return ConsumeResult.SUCCESS


def send(producer: Producer, numbers: range) -> None:
    """Send orders until each is acknowledged."""
    for number in numbers:
        message = Message()
        message.topic, message.body = TOPIC, f"order-{number:03d}".encode()
        deadline = time.monotonic() + 60
        while True:
            try:
                producer.send(message)
                break
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)


def main() -> None:
    """Every order is sent and consumed although a master, a proxy of two and a broker fail, one after the other."""
    configuration = ClientConfiguration(os.environ["RMQEMU_ENDPOINTS"], Credentials())
    billing = Billing()
    producer = Producer(configuration, (TOPIC,))
    producer.startup()
    consumer = PushConsumer(configuration, "python-billing", billing, {TOPIC: FilterExpression()})
    consumer.startup()
    steps = [("kill", "broker-b"), ("start", "broker-b"), ("kill", "proxy-1"), ("start", "proxy-1")]
    steps += [("suspend", "broker-a"), ("resume", "broker-a")]
    sent = PER_STEP
    send(producer, range(sent))
    for step in steps:
        rmqemu(*step)
        send(producer, range(sent, sent + PER_STEP))
        sent += PER_STEP
    deadline = time.monotonic() + 120
    while len(billing.orders) < sent and time.monotonic() < deadline:
        time.sleep(0.1)
    consumer.shutdown()
    producer.shutdown()
    assert len(billing.orders) == sent, f"{len(billing.orders)} of {sent} orders were consumed"
    print(f"{sent} orders were sent and consumed")


if __name__ == "__main__":
    main()
