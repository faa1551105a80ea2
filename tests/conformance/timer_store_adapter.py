"""Family timer_store: `TimerMessageStore` over a stub commit log, with one thread for each of its tasks."""

from collections import deque

import attrs

from conformance.executing import Adapter
from conformance.timer_admit_adapter import ORIGIN_MS, reported
from nodes.broker.tables.store.message_store import MessageStore
from nodes.broker.tables.store.put_message_result import PutMessageStatus
from nodes.broker.tables.timer.delay_offsets import TimerCheckPoint, TimerProgress
from nodes.broker.tables.timer.timer_messages import NEVER_ENQUEUED, TIMER_TOPIC
from nodes.broker.tables.timer.timer_store import TimerStore
from nodes.broker.timer.timer_delivery import TimerDelivery
from nodes.config.timer import TimerConfig
from nodes.protocol.model import DataVersion, Message
from nodes.protocol.properties import REAL_QUEUE_ID, REAL_TOPIC, TIMER_DEL_UNIQKEY, TIMER_OUT_MS, UNIQ_KEY

GROUP_MAX = 11
SLOTS = range(-50, 400)
SHIFT_MS = 1_000_000
PAUSE_MS = 500
"""Between two tries to put a message that is due."""
NO_RESULT = "NULL"
"""What a case calls a put without a result."""


class TimerStores(Adapter):
    def __init__(self, broker_id=0, **options):
        self.is_master = broker_id == 0
        self.config = TimerConfig(**options)
        self.progress = TimerProgress(
            TimerCheckPoint(last_read_time_ms=ORIGIN_MS, data_version=DataVersion()), self.is_master
        )
        self.messages = MessageStore("10.0.0.1:10911")
        self.timer = TimerStore(
            self.messages,
            self.progress,
            lambda: self.config,
            bytearray(),
            lambda: self.is_master,
            now_ms=ORIGIN_MS,
        )
        self.timer.curr_read_time_ms = self.timer.curr_write_time_ms = ORIGIN_MS
        self.clock = self
        self.slept_ms = 0
        self.delivery = TimerDelivery(self.timer, self.progress, self, self.put)
        self.scripted = deque()
        self.puts = []

    # The host of the delivery.

    def now_ms(self):
        return ORIGIN_MS + self.at_ms + self.slept_ms

    async def sleep_ms(self, duration_ms):
        self.slept_ms += int(duration_ms)

    async def put(self, message):
        name = self.scripted.popleft() if self.scripted else "PUT_OK"
        status = None if name == NO_RESULT else PutMessageStatus(name)
        self.puts.append(
            {
                "topic": message.topic,
                "queueId": message.queue_id,
                "properties": {name: shown_text(text) for name, text in message.properties.items()},
                "status": name,
                "clock": self.now_ms() - ORIGIN_MS,
            }
        )
        if status is PutMessageStatus.PUT_OK and message.topic == TIMER_TOPIC:
            self.messages.put_message(message, now_ms=self.now_ms())
        return status

    def tables(self):
        timer, point = self.timer, self.progress.check_point
        slots = {}
        precision_ms = timer.precision_ms
        for number in SLOTS:
            slot = timer.wheel.get_slot(ORIGIN_MS + number * precision_ms)
            if slot.time_ms != -1:
                time_ms = slot.time_ms - ORIGIN_MS
                row = [time_ms, slot.first_pos, slot.last_pos, slot.num, slot.magic]
                slots[f"{time_ms + SHIFT_MS:08}"] = row
        return {
            "progress": {
                "currReadTimeMs": timer.curr_read_time_ms - ORIGIN_MS,
                "currWriteTimeMs": timer.curr_write_time_ms - ORIGIN_MS,
                "currQueueOffset": timer.curr_queue_offset,
                "commitQueueOffset": timer.commit_queue_offset,
                "timerTopicMax": self.messages.max_offset(TIMER_TOPIC, 0),
                "checkpoint": [
                    point.last_read_time_ms - ORIGIN_MS,
                    point.last_timer_queue_offset,
                    point.master_timer_queue_offset,
                    point.data_version.counter,
                ],
            },
            "slots": slots,
            "metrics": {topic: found.count for topic, found in timer.metrics.timing_count.items()},
        }

    # The operations.

    def store_message(self, name, timer_out_ms, uniq_key, del_uniq_key, real_topic, real_queue_id):
        self.slept_ms = 0
        properties = {
            "n": name,
            TIMER_OUT_MS: str(ORIGIN_MS + timer_out_ms),
            UNIQ_KEY: uniq_key,
            REAL_TOPIC: real_topic,
            REAL_QUEUE_ID: str(real_queue_id),
        }
        if del_uniq_key is not None:
            properties[TIMER_DEL_UNIQKEY] = del_uniq_key
        self.messages.put_message(Message(TIMER_TOPIC, 0, 0, 0, 0, 0, b"", properties), now_ms=self.now_ms())

    def script_puts(self, statuses):
        self.scripted.extend(statuses)

    def remove_data(self):
        self.messages.delete_before(TIMER_TOPIC, 0, self.messages.max_offset(TIMER_TOPIC, 0))

    def set_role(self, role):
        self.is_master = role != "SLAVE"

    def special_services(self, on):
        self.timer.change_dequeue(running=on)

    def flush_checkpoint(self):
        self.slept_ms = 0
        self.timer.prepare_check_point(self.now_ms())

    def sync_checkpoint_from_master(self, last_read_time_ms, master_timer_queue_offset):
        self.progress.check_point = attrs.evolve(
            self.progress.check_point,
            last_read_time_ms=ORIGIN_MS + last_read_time_ms,
            master_timer_queue_offset=master_timer_queue_offset,
        )

    def enqueue(self):
        self.slept_ms = -self._pauses_ms()
        before = self.timer.curr_queue_offset
        taken = list(self.timer.enqueue(self.now_ms(), 1024))
        found = bool(taken) and self.timer.curr_queue_offset - before == len(taken)
        for place in range(0, len(taken), GROUP_MAX):
            group = taken[place : place + GROUP_MAX]
            for request in group:
                due = self.timer.put_into_wheel(request, self.now_ms())
                if due is not None:
                    run(self.delivery.deliver(due))
            self.timer.commit(group[-1].message.queue_offset + 1, self.now_ms())
        self.timer.commit(self.timer.curr_queue_offset, self.now_ms())
        return {"found": found, "requests": len(taken), "puts": self.taken_puts()}

    def _pauses_ms(self):
        """The pauses between the puts of messages that are due already: the time of a step is that after them."""
        waiting = self.messages.messages(TIMER_TOPIC, 0, self.timer.curr_queue_offset, 1024)
        before_ms, now_ms = self.timer.curr_write_time_ms, ORIGIN_MS + self.at_ms
        presents = ((message, before_ms if number < GROUP_MAX else now_ms) for number, message in enumerate(waiting))
        if not any(int(message.properties[TIMER_OUT_MS]) < present_ms for message, present_ms in presents):
            return 0
        return PAUSE_MS * sum(status != "PUT_OK" for status in self.scripted)

    def dequeue_until_idle(self):
        self.slept_ms = 0
        # Nothing but an enqueue moves the present on here.
        present_ms, self.timer.is_enqueuing = self.timer.curr_write_time_ms, True
        before_ms = self.timer.curr_read_time_ms
        while (requests := self.timer.release(self.now_ms())) is not None:
            for request in requests:
                run(self.delivery.deliver(request))
            self.timer.move_read_time()
        self.timer.is_enqueuing = False
        assert self.timer.curr_write_time_ms == present_ms
        delivers = self.progress.should_running_dequeue
        visited = (self.timer.curr_read_time_ms - before_ms) // self.timer.precision_ms if delivers else 0
        return {"slotsVisited": visited, "puts": self.taken_puts()}

    def taken_puts(self):
        puts, self.puts = self.puts, []
        return puts or None


def shown_text(text):
    return "MAX" if text == str(NEVER_ENQUEUED) else reported(text)


def run(delivery):
    """Run a delivery whose host never makes it wait."""
    try:
        delivery.send(None)
    except StopIteration:
        return
    raise AssertionError("the delivery waits for something")
