"""The single active consumer of each queue, beside a model: a list of those who registered."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.single_active import GroupQueue, SingleActiveConsumers

QUEUES = [GroupQueue("g", "t", 0), GroupQueue("g", "t", 1), GroupQueue("h", "t", 0)]
steps = st.lists(st.tuples(st.sampled_from(["register", "cancel", "leave"]), st.integers(0, 2), st.integers(0, 4)))


@given(steps)
def test_the_first_of_those_who_are_registered_is_active(steps):
    table = SingleActiveConsumers(("g", "h"))
    model = {queue: [] for queue in QUEUES}

    for what, place, channel in steps:
        queue = QUEUES[place]
        if what == "register":
            is_active = table.register(queue, channel, f"c{channel}")
            model[queue] += [channel] if channel not in model[queue] else []
            assert is_active == (model[queue][0] == channel)
        elif what == "cancel":
            was_active = model[queue][:1] == [channel]
            assert table.cancel(queue, channel) == was_active
            model[queue] = [one for one in model[queue] if one != channel]
        else:
            assert sorted(table.queues_of(channel)) == sorted(one for one in QUEUES if channel in model[one])
            for one in table.queues_of(channel):
                table.cancel(one, channel)
                model[one].remove(channel)
        for one in QUEUES:
            assert table.active(one) == ((model[one][0], f"c{model[one][0]}") if model[one] else None)
            assert all(table.may_commit(one, who) == (model[one][:1] in ([], [who])) for who in range(5))


def test_each_active_consumer_begins_to_read_once():
    table, queue = SingleActiveConsumers(("g",)), QUEUES[0]
    table.register(queue, 1, "a")
    table.register(queue, 2, "b")

    assert [table.begins_to_read(queue), table.begins_to_read(queue)] == [True, False]
    table.cancel(queue, 1)
    assert [table.begins_to_read(queue), table.begins_to_read(queue)] == [True, False]


def test_only_the_groups_that_are_named_have_a_single_active_consumer():
    table = SingleActiveConsumers(("g",))

    assert "g" in table.groups
    assert "h" not in table.groups
