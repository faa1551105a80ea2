"""An ordinary application under test, with the C++ client that the wheel `rocketmq` carries.

pip install rocketmq==0.4.4
rmqemu up examples/guests.toml --exec python examples/guests/python/survives.py
"""

import os
import subprocess
import time

from rocketmq.client import Message, Producer, PushConsumer

TOPIC, ORDERS = "PythonOrders", 60


def rmqemu(*words: str) -> None:
    """Break the cluster, or heal it, as one would by hand."""
    subprocess.run(["rmqemu", "ctl", "--run", os.environ["RMQEMU_RUN"], *words], check=True)


def send(producer: Producer, numbers: range) -> None:
    """Send orders; a producer that finds a master dead tries another one."""
    for number in numbers:
        message = Message(TOPIC)
        message.set_body(f"order-{number:03d}")
        for attempt in range(10):
            try:
                producer.send_sync(message)
                break
            except Exception:
                if attempt == 9:
                    raise
                time.sleep(0.2)


def main() -> None:
    """Every order is sent and consumed although a master dies and comes back."""
    consumed: dict[str, None] = {}

    def listen(message) -> None:
        consumed[message.body.decode()] = None

    producer = Producer("python-shop")
    producer.set_namesrv_addr(os.environ["NAMESRV_ADDR"])
    producer.start()
    send(producer, range(20))
    consumer = PushConsumer("python-billing")
    consumer.set_namesrv_addr(os.environ["NAMESRV_ADDR"])
    consumer.subscribe(TOPIC, listen)
    consumer.start()
    rmqemu("kill", "broker-b")
    send(producer, range(20, 40))
    rmqemu("start", "broker-b")
    send(producer, range(40, ORDERS))
    deadline = time.monotonic() + 90
    while len(consumed) < ORDERS and time.monotonic() < deadline:
        time.sleep(0.1)
    consumer.shutdown()
    producer.shutdown()
    assert len(consumed) == ORDERS, f"{len(consumed)} of {ORDERS} orders were consumed"
    print(f"{ORDERS} orders were sent and consumed")


if __name__ == "__main__":
    main()
