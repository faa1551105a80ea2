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
    SendReceipt,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)

ORDERS, IN_ORDER, LATER, PAID = "Orders", "OrdersInOrder", "LaterOrders", "PaidOrders"
PER_STEP, DELAY_S, INVISIBLE_S = 20, 5, 30


def rmqemu(*words: str) -> None:
    """Break the cluster, or heal it, as one would by hand."""
    subprocess.run(["rmqemu", "ctl", "--run", os.environ["RMQEMU_RUN"], *words], check=True)


class Billing(MessageListener):
    """Notes when which orders came first."""

    def __init__(self) -> None:
        self.orders: dict[str, float] = {}
        self._lock = threading.Lock()

    def consume(self, message) -> ConsumeResult:
        """Take an order."""
        with self._lock:
            self.orders.setdefault(message.body.decode(), time.time())
        return ConsumeResult.SUCCESS


class Audit:
    """Receives orders with a simple consumer, and acknowledges them, in a thread of its own until it is closed.

    It goes on after an error, as an application must. This client sends its settings to a proxy that has not seen them
    after five minutes at the latest, and until then the proxy refuses its heartbeats and, in the end, what it receives.
    """

    def __init__(self, consumer: SimpleConsumer) -> None:
        self.orders: list[str] = []
        self._consumer = consumer
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()

    def close(self) -> None:
        """Receive no more."""
        self._over.set()
        self._thread.join()

    def _receive(self) -> None:
        while not self._over.is_set():
            try:
                for message in self._consumer.receive(16, INVISIBLE_S) or ():
                    self.orders.append(message.body.decode())
                    self._consumer.ack(message)
            except Exception as error:
                print(f"the simple consumer goes on after {error}")
                time.sleep(0.5)


class Paid(TransactionChecker):
    """Commits what brokers ask for."""

    def check(self, message) -> TransactionResolution:  # noqa: ARG002
        """Whether an order is paid."""
        return TransactionResolution.COMMIT


def order(topic: str, body: str) -> Message:
    """An order that can be sent."""
    message = Message()
    message.topic, message.body = topic, body.encode()
    return message


def send(producer: Producer, message: Message) -> SendReceipt:
    """Send a message until it is acknowledged."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return producer.send(message)
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def send_special_orders(producer: Producer) -> int:
    """Send a FIFO message, two delayed ones of which one is recalled, and a transaction; returns when those are due."""
    fifo = order(IN_ORDER, "fifo")
    fifo.message_group = "customer-1"
    send(producer, fifo)
    due_s = round(time.time()) + DELAY_S
    for body in ("delayed", "recalled"):
        later = order(LATER, body)
        later.delivery_timestamp = due_s
        receipt = send(producer, later)
    producer.recall_message(LATER, receipt.recall_handle)
    transaction = producer.begin_transaction()
    producer.send(order(PAID, "paid"), transaction)
    transaction.commit()
    return due_s


def main() -> None:
    """Every order is sent and consumed although a master, a proxy of two and a broker fail, one after the other."""
    configuration = ClientConfiguration(os.environ["RMQEMU_ENDPOINTS"], Credentials())
    topics = (ORDERS, IN_ORDER, LATER, PAID)
    billing = Billing()
    producer = Producer(configuration, topics, Paid())
    producer.startup()
    consumer = PushConsumer(configuration, "python-billing", billing, {topic: FilterExpression() for topic in topics})
    consumer.startup()
    simple = SimpleConsumer(configuration, "python-audit", {IN_ORDER: FilterExpression()}, 5)
    simple.startup()
    audit = Audit(simple)
    due_s = send_special_orders(producer)
    sent = ["fifo", "delayed", "paid"]
    steps = [(), ("kill", "broker-b"), ("start", "broker-b"), ("kill", "proxy-1"), ("start", "proxy-1")]
    steps += [("suspend", "broker-a"), ("resume", "broker-a")]
    for step in steps:
        if step:
            rmqemu(*step)
        for _ in range(PER_STEP):
            sent.append(f"order-{len(sent):03d}")
            send(producer, order(ORDERS, sent[-1]))
    deadline = time.monotonic() + 120
    while not (audit.orders and len(billing.orders) == len(sent)) and time.monotonic() < deadline:
        time.sleep(0.1)
    audit.close()
    for client in (simple, consumer, producer):
        client.shutdown()
    missing = [body for body in sent if body not in billing.orders]
    assert not missing, f"{missing} of {len(sent)} orders were not consumed"
    assert "recalled" not in billing.orders
    assert billing.orders["delayed"] >= due_s, "the delayed order came early"
    assert set(audit.orders) == {"fifo"}, f"{audit.orders} came to the simple consumer"
    print(f"{len(sent)} orders were sent and consumed")


if __name__ == "__main__":
    main()
