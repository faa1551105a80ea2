"""What words can ask, and what is said to words that are no question."""

import pytest

from emulator.why.question import FORMS, BeliefQuestion, NodeQuestion, QueueQuestion, WhyError, question
from nodes.beliefs import BeliefKind

S = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("queue orders/broker-a/3", QueueQuestion("orders", "broker-a", 3)),
        ("queue %RETRY%g/broker-a/0 of g at 31.2s", QueueQuestion("%RETRY%g", "broker-a", 0, "g", 31_200_000_000)),
        ("queue orders/broker-a/3 at 2m of g", QueueQuestion("orders", "broker-a", 3, "g", 120 * S)),
        ("consumer_ids g of broker-a at 90s", BeliefQuestion(BeliefKind.CONSUMER_IDS, "g", "broker-a", 90 * S)),
        ("view g/orders", BeliefQuestion(BeliefKind.VIEW, "g/orders")),
        ("orders of c1 at 250ms", BeliefQuestion(None, "orders", "c1", 250_000_000)),
        ("node broker-a at 1.5m", NodeQuestion("broker-a", 90 * S)),
        ("route at", None),
        ("node queue", NodeQuestion("queue")),
    ],
)
def test_words_become_a_question(text, asked):
    if asked is None:
        with pytest.raises(WhyError, match="expected a time behind at"):
            question([text])
    else:
        assert question([text]) == asked
        assert question(text.split()) == asked


@pytest.mark.parametrize("kind", list(BeliefKind))
def test_every_kind_of_belief_can_be_asked_about(kind):
    assert question([kind.value, "x"]) == BeliefQuestion(kind, "x")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "",
            f"expected: {FORMS}",
        ),
        ("no c1 in", "expected: queue TOPIC/BROKER/ID"),
        ("no c1 in consumer_id g", "there is no kind of belief consumer_id; did you mean consumer_ids"),
        ("no c1 of g", "expected: queue TOPIC/BROKER/ID"),
        ("queue", "expected: queue TOPIC/BROKER/ID"),
        (
            "queue orders/broker-a",
            "expected a queue as TOPIC/BROKER/ID, such as orders/broker-a/3, not orders/broker-a",
        ),
        ("queue orders/broker-a/x", "expected a queue as TOPIC/BROKER/ID, such as orders/broker-a/3, not orders/b"),
        ("queue orders/broker-a/3 at noon", "expected a time such as 31.2s, 31200ms or 2m, not noon"),
        ("queue orders/broker-a/3 at -1s", "expected a time such as 31.2s, 31200ms or 2m, not -1s"),
        ("queue orders/broker-a/3 of", "expected a name behind of: queue TOPIC/BROKER/ID"),
        ("consumer_id g", "there is no kind of belief consumer_id; did you mean consumer_ids"),
        ("node broker-a of g", "expected: queue TOPIC/BROKER/ID"),
        ("route orders orders orders", "expected: queue TOPIC/BROKER/ID"),
    ],
)
def test_words_that_are_no_question_get_one_line_that_says_what_was_expected(text, why):
    with pytest.raises(WhyError) as refused:
        question([text])

    assert str(refused.value).startswith(why)
    assert "\n" not in str(refused.value)
