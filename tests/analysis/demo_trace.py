"""A trace such as the emulator leaves: start-up, a one-sided partition, a kill, a restart, a suspension."""

from collections import Counter

from analysis.trace_rows import HandMadeTrace

GROUP = "orders-group"
TOPIC = "OrderTopic"
END_S = 600
HEAL_S = 300


class DemoCluster:
    """Consumers that allocate averagely from what they are reported to see."""

    def __init__(self, run, consumers=4, brokers=2, queues=8):
        self.trace = HandMadeTrace(run)
        self.consumers = [f"consumer-{n}" for n in range(1, consumers + 1)]
        self.queues = [(TOPIC, f"broker-{'abcd'[b]}", q) for b in range(brokers) for q in range(queues)]
        self.retry = [(f"%RETRY%{GROUP}", f"broker-{'abcd'[b]}", 0) for b in range(brokers)]
        self.owned = {}

    def rebalance(self, consumer, at_s, members):
        """One pass of a consumer that sees these members."""
        self.trace.at(at_s)
        for queues in (self.queues, self.retry):
            topic = queues[0][0]
            cids = sorted(members)
            counts = dict(Counter(broker for _, broker, _ in queues))
            self.trace.believe(consumer, {"cids": cids, "queues": counts}, f"{GROUP}/{topic}")
            share = allocate(queues, cids, consumer)
            before = self.owned.get((consumer, topic), [])
            for _, broker, queue in [q for q in before if q not in share]:
                self.trace.own(consumer, "dropped", queue, topic, broker, GROUP)
            for _, broker, queue in [q for q in share if q not in before]:
                self.trace.own(consumer, "acquired", queue, topic, broker, GROUP)
            self.owned[consumer, topic] = share

    def end(self, consumer, event):
        self.trace.life(consumer, event)
        self.owned = {key: queues for key, queues in self.owned.items() if key[0] != consumer}


def allocate(queues, cids, consumer):
    """AVG."""
    if consumer not in cids:
        return []
    index, members = cids.index(consumer), len(cids)
    size, more = divmod(len(queues), members)
    start = index * size + min(index, more)
    return queues[start : start + size + (1 if index < more else 0)]


def demo_trace(run="demo", **sizes):
    """Ten minutes in the life of a group."""
    demo = DemoCluster(run, **sizes)
    trace, names = demo.trace, demo.consumers
    for number, name in enumerate(names):
        trace.at(1 + number / 10).life(name, "started", GROUP, role="consumer").life(name, "ready", GROUP)
    for number, name in enumerate(names):
        demo.rebalance(name, 2 + number / 10, names[: number + 1])
    for number, name in enumerate(names):
        demo.rebalance(name, 3.5 + number / 3, names)
    _partition(demo)
    _kill_and_restart(demo)
    _suspend(demo)
    return trace


def _partition(demo):
    """broker-b forgets consumer-2: who asks it sees one member less, and queues get two owners."""
    names = demo.consumers
    fewer = [name for name in names if name != names[1]]
    demo.trace.at(100).fault("begin", "f1", "cut", f"{names[1]} -> broker-b")
    for number, name in enumerate(fewer):
        demo.rebalance(name, 225 + number * 7, fewer)
    demo.trace.at(HEAL_S).fault("end", "f1", "cut", f"{names[1]} -> broker-b")
    for number, name in enumerate(names):
        demo.rebalance(name, HEAL_S + 8 + number * 5, names)


def _kill_and_restart(demo):
    names = demo.consumers
    rest = [name for name in names if name != names[2]]
    demo.trace.at(330)
    demo.end(names[2], "killed")
    for number, name in enumerate(rest):
        demo.rebalance(name, 330.2 + number * 0.3, rest)
    demo.trace.at(400).life(names[2], "started", GROUP).life(names[2], "ready", GROUP)
    for number, name in enumerate(names):
        demo.rebalance(name, 401 + number * 0.4, names)


def _suspend(demo):
    names = demo.consumers
    demo.trace.at(460).fault("begin", "f2", "suspend", names[0]).life(names[0], "suspended")
    rest = names[1:]
    for number, name in enumerate(rest):
        demo.rebalance(name, 552 + number * 4, rest)
    demo.trace.at(580).fault("end", "f2", "suspend", names[0]).life(names[0], "resumed")
    for number, name in enumerate(names):
        demo.rebalance(name, 580.5 + number * 0.4, names)
