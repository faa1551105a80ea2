"""The single active consumer of each queue, next to a model: a list of those who registered."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.clients.single_active import SingleActiveConsumers, SingleActiveQueue

QUEUES = [SingleActiveQueue("g", "t", 0), SingleActiveQueue("g", "t", 1), SingleActiveQueue("h", "t", 0)]
steps = st.lists(st.tuples(st.sampled_from(["register", "cancel", "leave"]), st.integers(0, 2), st.integers(0, 4)))


@given(steps)
def test_the_first_of_those_who_are_registered_is_active(steps):
    table = SingleActiveConsumers(("g", "h"))
    model = {queue: [] for queue in QUEUES}

    for subject, place, channel in steps:
        queue = QUEUES[place]
        if subject == "register":
            is_active = table.register(queue, channel, f"c{channel}")
            model[queue] += [channel] if channel not in model[queue] else []
            assert is_active == (model[queue][0] == channel)
        elif subject == "cancel":
            was_active = model[queue][:1] == [channel]
            assert table.cancel(queue, channel) == was_active
            model[queue] = [element for element in model[queue] if element != channel]
        else:
            assert sorted(table.queues_of(channel)) == sorted(
                element for element in QUEUES if channel in model[element]
            )
            for item in table.queues_of(channel):
                table.cancel(item, channel)
                model[item].remove(channel)
        for item in QUEUES:
            assert table.active(item) == ((model[item][0], f"c{model[item][0]}") if model[item] else None)
            assert all(table.may_commit(item, number) == (model[item][:1] in ([], [number])) for number in range(5))


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
