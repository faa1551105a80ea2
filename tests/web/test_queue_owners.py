"""Who owns which queue, reported from rows."""

from emulator.history.rows.queues import GroupQueue
from emulator.spec import loads
from emulator.state.present_owners import PresentOwners
from emulator.trace.schema import LIFECYCLE, OWNERSHIP

Q0, Q1 = (GroupQueue("buyers", "orders", "broker-a", queue_id) for queue_id in (0, 1))

SCENARIO = """
[scenario]
name = "two-queues"
run_for_s = 1

[[broker]]
name = "broker-a"

[[topic]]
name = "orders"
queues = 2

[[consumer]]
group = "buyers"
topics = ["orders"]
"""


def reported(book, node, event, queue):
    place = (queue.group, queue.topic, queue.broker_name, queue.queue_id)
    book.note(OWNERSHIP, (1, 0, node, "consumer", 1, event, *place, 0, 0))


def ended(book, node, event):
    book.note(LIFECYCLE, (1, 0, node, "consumer", 1, event, "", 0))


def test_a_queue_belongs_to_all_who_took_it_until_they_drop_it():
    book = PresentOwners()
    reported(book, "c1", "acquired", Q0)
    reported(book, "c2", "acquired", Q0)
    reported(book, "c2", "locked", Q0)
    assert book.owners_of(Q0) == ("c1", "c2")
    reported(book, "c1", "dropped", Q0)
    assert book.owners_of(Q0) == ("c2",)


def test_a_process_that_ended_owns_nothing_and_one_that_is_suspended_keeps_all():
    book = PresentOwners()
    reported(book, "c1", "acquired", Q0)
    ended(book, "c1", "suspended")
    assert book.owners_of(Q0) == ("c1",)
    ended(book, "c1", "killed")
    assert book.owners_of(Q0) == ()


def test_queues_that_no_one_ever_took_are_there_and_changes_are_reported_once():
    book = PresentOwners(loads(SCENARIO, "here"))
    changed, mark = book.changed_since(-1)
    assert changed == (Q0, Q1)
    assert book.changed_since(mark) == ((), mark)
    reported(book, "c1", "acquired", Q1)
    ended(book, "c2", "killed")
    assert book.changed_since(mark)[0] == (Q1,)
