"""Groups that want some tags of a topic only."""

from collections import Counter

import attrs
import pytest

from emulator.testing import TOPIC, a_scenario, execute

TAGS = ("a", "b", "c")


def filtered(expression, tags=TAGS, rate_per_s=6):
    """One queue, a producer of these tags in turn, and a consumer of some of them."""
    scenario = a_scenario(consumers=1, queues=1, rate_per_s=rate_per_s)
    consumers = tuple(attrs.evolve(consumer, expressions={TOPIC: expression}) for consumer in scenario.consumers)
    producers = tuple(attrs.evolve(producer, tags=tags) for producer in scenario.producers)
    return attrs.evolve(scenario, consumers=consumers, producers=producers)


def consumed_tags(trace, tags=TAGS):
    """Of one queue offset and tag go in step: tag -> how many messages of it were consumed."""
    return Counter(tags[row.offset % len(tags)] for row in trace.select("messages", event="consumed", topic=TOPIC))


def commits(trace):
    return [row.offset for row in trace.select("messages", event="committed", topic=TOPIC)]


def pulled(trace):
    return len(trace.select("rpc", dst="c1", code=11, kind="response", event="delivered", status=0))


def test_only_messages_of_wanted_tags_reach_the_listener():
    trace = execute(filtered("a || c"), for_ms=20_000)

    counts = consumed_tags(trace)
    assert sorted(counts) == ["a", "c"]
    assert min(counts.values()) > 30


def test_messages_of_other_tags_move_the_offset_all_the_same():
    trace = execute(filtered("d"), for_ms=30_000)

    assert consumed_tags(trace) == {}
    assert pulled(trace) == 0
    assert commits(trace)[-1] > 100


@pytest.mark.trap("X15")
def test_a_blank_expression_delivers_nothing_and_a_star_among_tags_is_a_tag_of_that_name():
    assert consumed_tags(execute(filtered(" "), for_ms=10_000)) == {}
    with_star = ("a", "*", "c")
    assert sorted(consumed_tags(execute(filtered("c||*", with_star), for_ms=10_000), with_star)) == ["*", "c"]


@pytest.mark.trap("X15")
def test_a_tag_of_the_same_hash_is_delivered_and_thrown_away_and_does_not_move_the_offset():
    trace = execute(filtered("Aa", ("BB",)), for_ms=20_000)

    assert consumed_tags(trace, ("BB",)) == {}
    assert pulled(trace) > 50
    # The broker gets back what it answered when the queue was taken.
    assert commits(trace) == [0]


def test_a_message_of_a_wanted_tag_commits_those_that_were_thrown_away_before_it():
    trace = execute(filtered("Aa", ("BB", "BB", "BB", "Aa")), for_ms=20_000)

    assert sorted(consumed_tags(trace, ("BB", "BB", "BB", "Aa"))) == ["Aa"]
    assert {offset % 4 for offset in commits(trace)} == {0}
