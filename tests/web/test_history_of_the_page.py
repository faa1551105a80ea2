"""What the page's sections were at an instant, reported from their changes."""

from hypothesis import given
from hypothesis import strategies as st

from emulator.web.history import History

CHANGES = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["nodes", "views"]),
        st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(0, 9)),
    ),
    max_size=30,
)


def with_instants(changes):
    """(instant, section, entries) in order; several changes may share an instant."""
    t_ms = 0
    for step_ms, section, entries in changes:
        t_ms += step_ms
        yield t_ms, section, entries


def naively(changes, at_ms):
    """All changes up to an instant, one after the other."""
    state = {}
    for t_ms, section, entries in changes:
        if t_ms <= at_ms:
            merged = {**state.get(section, {}), **entries}
            state[section] = {key: entry for key, entry in merged.items() if entry is not None}
    return {section: entries for section, entries in state.items() if entries}


@given(CHANGES, st.integers(0, 200), st.integers(1, 5))
def test_an_instant_has_all_changes_up_to_it_however_few_are_retained(changes, chars_max, block_changes):
    reported = list(with_instants(changes))
    history = History(chars_max, block_changes)
    for t_ms, section, entries in reported:
        history.note(t_ms, {section: entries})
    for at_ms in range(100):
        found = {section: entries for section, entries in history.at(at_ms).items() if entries}
        assert found == naively(reported, max(at_ms, history.from_ms))


def test_the_oldest_changes_are_forgotten_and_what_they_led_to_is_retained():
    history = History(chars_max=100, block_changes=5)
    history.note(0, {"nodes": {"a": "running"}})
    for t_ms in range(1, 1_000):
        history.note(t_ms, {"faults": {"cut-1": t_ms}})
    assert history.from_ms > 900
    assert history.at(0) == {"nodes": {"a": "running"}, "faults": {"cut-1": history.from_ms}}


def test_to_look_at_an_instant_changes_nothing():
    history = History()
    history.note(1, {"nodes": {"a": 1}})
    history.note(2, {"nodes": {"a": None}})
    assert [history.at(at_ms) for at_ms in (1, 2, 1)] == [{"nodes": {"a": 1}}, {"nodes": {}}, {"nodes": {"a": 1}}]
