"""Family pop_client: what a consumer does with messages that it has popped, and when it pops."""

from types import SimpleNamespace

import structlog
import trio

from conformance.executing import Adapter
from nodes.client.consumer.consume_popped import ConsumeMessagePopConcurrentlyService
from nodes.client.consumer.pop import PopMessages
from nodes.client.tables.consumer_stats import ConsumerStats
from nodes.client.tables.popped_messages import NoDelayLevelError, put_off_ms, retained_and_acknowledged
from nodes.client.tables.process_queue import PopProcessQueue, PopRequest
from nodes.config import ConsumerConfig
from nodes.filter.filter_api import build_subscription_data, client_keeps
from nodes.protocol.extra_info import build_extra_info
from nodes.protocol.model import Message, MessageQueue
from nodes.protocol.properties import POP_CK, TAGS
from nodes.protocol.retries import MAX_RECONSUME_TIMES

TOPIC, GROUP, BROKER = "tA", "g", "bk-a"
QUEUE = MessageQueue(TOPIC, BROKER, -1)
ACKNOWLEDGES = {"CONSUME_SUCCESS": 2**31 - 1, "RECONSUME_LATER": -1}
FAILS = ("run_throws", "run_returns_null")
BATCH = 2
STATS = ConsumerStats(0)


class PopClient(Adapter):
    """The consumer is its own host, listener and broker."""

    def __init__(self, max_reconsume_times=-1, pop_threshold_for_queue=96):
        self.times_max = MAX_RECONSUME_TIMES if max_reconsume_times < 0 else max_reconsume_times
        self.config = ConsumerConfig(pop_threshold_for_queue=pop_threshold_for_queue, consume_message_batch_max_size=32)
        self.calls = []
        self.clock, self.log = self, structlog.get_logger("discarded", level="critical")
        self.shift_ms = 0

    # What is asked for

    def now_ms(self):
        return self.at_ms + self.shift_ms

    async def ack(self, message):
        self.calls.append(["ack", f"m{message.queue_offset}"])

    async def change_invisible_time(self, message, invisible_ms):
        self.calls.append(["change", str(message.queue_offset), invisible_ms])

    def pull_later(self, _request, delay_ms):
        self.calls.append(["pop_later", delay_ms])

    def reported(self):
        calls, self.calls = self.calls, []
        return calls

    # The operations

    def is_pull_expired(self, last_pop):
        return {"result": PopProcessQueue(last_pop).is_pull_expired(self.at_ms)}

    def process_pop_result(self, expression, tags, reconsume_times):
        subscription = build_subscription_data(TOPIC, expression)
        messages = [self.message(place, tag, reconsume_times) for place, tag in enumerate(tags)]
        retained, refused = retained_and_acknowledged(
            messages, lambda message: client_keeps(subscription, message.properties.get(TAGS)), self.times_max
        )
        return {
            "left": [f"m{message.queue_offset}" for message in retained],
            "calls": [["ack", f"m{message.queue_offset}"] for message in refused],
        }

    def process_consume_result(
        self, reconsume_times, age_ms, status, messages=1, ack_index=None, delay_level=0, max_reconsume_times=None
    ):
        if max_reconsume_times is not None:
            self.times_max = MAX_RECONSUME_TIMES if max_reconsume_times < 0 else max_reconsume_times
        acknowledged = ACKNOWLEDGES[status] if ack_index is None or status == "RECONSUME_LATER" else ack_index
        error, wait_ack = None, messages
        for place in range(messages):
            wait_ack -= 1
            if place <= acknowledged:
                self.calls.append(["ack", f"m{place}"])
                continue
            message = self.message(place, None, reconsume_times, born_ms=self.at_ms - age_ms)
            try:
                invisible_ms = put_off_ms(message, self.times_max, self.at_ms, delay_level)
            except NoDelayLevelError:
                error = "ArrayIndexOutOfBoundsException"
                break
            self.calls.append(["ack", f"m{place}"] if invisible_ms is None else ["change", str(place), invisible_ms])
        out = {"error": error, "calls": self.reported()}
        return out if max_reconsume_times is not None else out | {"waitAck": wait_ack}

    def run(self, pop_time, invisible_time, delta_ms):
        queue = PopProcessQueue(0, wait_ack=BATCH, dropped=self.case == "run_dropped_before")
        handle = None if self.case == "run_no_ck" else (pop_time, invisible_time)
        messages = tuple(self.message(place, None, 0, handle=handle) for place in range(BATCH))
        edge_ms = pop_time + invisible_time + delta_ms - self.at_ms
        self.shift_ms = edge_ms if self.case == "run_late_before" else 0
        called = []

        async def consume_popped(_places, _messages):
            called.append(True)
            queue.dropped = queue.dropped or self.case == "run_dropped_during"
            if self.case == "run_late_after":
                self.shift_ms = edge_ms
            return self.case not in FAILS

        listener = SimpleNamespace(consume_popped=consume_popped)
        service = ConsumeMessagePopConcurrentlyService(self, self.config, GROUP, listener, self, self.times_max, STATS)
        jobs = []
        self.start_soon = lambda job, name: jobs.append(job)
        service.submit(QUEUE, queue, messages)
        for job in jobs:
            trio.run(job)
        return {"listenerCalled": bool(called), "calls": self.reported(), "waitAck": queue.wait_ack}

    def pop_message(self, state):
        word, _, number = state.partition("_")
        queue = PopProcessQueue(0, dropped=state == "dropped", wait_ack=int(number) if word == "waiting" else 0)
        self.paused = state == "paused"
        pops = PopMessages(
            SimpleNamespace(host=self), self.config, GROUP, self, self, None, lambda _topic: None, self.times_max, STATS
        )
        trio.run(pops.pop, PopRequest(QUEUE, queue))
        if state == "waiting_96":
            # Without a subscription it goes no further.
            return {"passesGuards": self.reported() == [["pop_later", 1000]]}
        return {"calls": self.reported()}

    def message(self, place, tag, reconsume_times, *, born_ms=0, handle=None):
        properties = {TAGS: tag} if tag else {}
        if handle:
            properties[POP_CK] = build_extra_info(0, *handle, 0, TOPIC, BROKER, 0, place)
        return Message(TOPIC, 0, place, 0, born_ms, 0, b"", properties, reconsume_times=reconsume_times)
