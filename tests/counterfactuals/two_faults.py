"""A short run with two overlapping faults, one of them innocent, and an act."""

from contextlib import contextmanager

from emulator.counterfactuals.repeated_run import RepeatRun

TEXT = """
[scenario]
name = "two-faults"
run_for_s = 80

[nameserver]
count = 1

[[broker]]
name = "broker-a"

[[broker]]
name = "broker-b"

[[topic]]
name = "orders"
queues = 2

[[consumer]]
group = "shop"
names = ["c1", "c2"]
topics = ["orders"]

[[producer]]
group = "tills"
name = "till"
topic = "orders"
rate_per_s = 10

[[fault]]
id = "frozen"
do = "suspend c1"
at_s = 25
for_s = 30

[[fault]]
id = "slow"
do = "delay 5 c2 broker-b"
at_s = 30
for_s = 20

[[admin]]
id = "closed"
at_s = 32
do = "update-sub-group shop consumeEnable=false on broker-b"
"""
"""In truth: messages of broker-a wait for `frozen`, those of broker-b for `closed`; `slow` is innocent."""


@contextmanager
def unseen(title):
    """A progress bar that nobody sees."""
    assert title
    yield lambda done, total: None


def repeated_run(report, run, **options):
    """What Repeating a run shows."""
    return RepeatRun(unseen, **options).execute(report, run)
