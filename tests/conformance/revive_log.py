"""The revive topic as the cases have it: records that are due stand in the log, the others wait in a wheel."""

import json

ORIGIN_MS = 1_000_000_000_000
"""When these cases began; a scan goes in the order of hashes of texts that hold times."""
REVIVE_TOPIC = "rmq_sys_REVIVE_LOG_c1"
STORED = ("PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")


class ReviveLog:
    """Records by place: rows of the tables `log` and `wheel`."""

    def __init__(self):
        self.put_status = None
        self.calls = []
        self.log = {}
        self.wheel = {}
        self.next_offsets = {}
        self.arrived = 0

    def tables(self):
        rows = {f"{topic}@{queue}#{offset}": row for (topic, queue, offset), row in self.log.items()}
        return {"log": rows, "wheel": {f"{number:06}": shown(row) for number, row in self.wheel.items()}}

    def put(self, queue_id, tag, deliver_ms, key, body, now_ms):
        """Put a record; returns its offset, None if it is refused."""
        if self.put_status is not None:
            self.calls.append(["put", REVIVE_TOPIC, queue_id, self.put_status])
            if self.put_status not in STORED:
                return None
        row = {"tag": tag, "deliverAt": relative(deliver_ms), "uniqKey": key, "json": reported(body)}
        if deliver_ms > now_ms:
            self.wheel[self.arrived] = (queue_id, row)
            self.arrived += 1
            return self.arrived - 1
        return self.append(REVIVE_TOPIC, queue_id, row)

    def append(self, topic, queue_id, row):
        offset = self.next_offsets.get((topic, queue_id), 0)
        self.next_offsets[topic, queue_id] = offset + 1
        self.log[topic, queue_id, offset] = row
        return offset

    def deliver_due(self, now_ms):
        due = [number for number, (_, row) in self.wheel.items() if row["deliverAt"] + ORIGIN_MS <= now_ms]
        delivered = []
        for number in sorted(due, key=lambda number: (self.wheel[number][1]["deliverAt"], number)):
            queue_id, row = self.wheel.pop(number)
            delivered.append([REVIVE_TOPIC, queue_id, self.append(REVIVE_TOPIC, queue_id, row), row["tag"]])
        return delivered

    def put_ck(self, ck, queue_id, now_ms):
        deliver_ms = ck.revive_time_ms - 1000
        return self.put(queue_id, "ck", deliver_ms, relative_key(ck.unique_id, ck), ck.to_json(), now_ms)

    def take_calls(self):
        calls, self.calls = self.calls, []
        return {"calls": calls or None}


def relative(time_ms):
    return time_ms - ORIGIN_MS


def relative_key(key, record):
    return key.replace(str(record.pop_time_ms), f"now+{relative(record.pop_time_ms)}")


def reported(body):
    fields = json.loads(body)
    fields.pop("reviveTime", None)
    return fields | {"pt": relative(fields["pt"])}


def shown(row):
    return {"topic": REVIVE_TOPIC, "queueId": row[0], "record": row[1]}


def body_of(row):
    """The body of a record in the log, with its own times again."""
    return json.dumps(row["json"] | {"pt": row["json"]["pt"] + ORIGIN_MS})
