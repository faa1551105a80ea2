"""What words can ask, and what is said to words that are no question."""

from pathlib import Path

import pytest

from emulator.why.forms import FORM_TABLE, FORMS
from emulator.why.question import (
    BeliefQuestion,
    GroupQuestion,
    LagQuestion,
    MessageQuestion,
    NodeQuestion,
    QueueQuestion,
    StallQuestion,
    StoredAt,
    StormQuestion,
    TopicQuestion,
    TransactionQuestion,
    WhyError,
    no_question_about,
    question,
)
from nodes.beliefs import BeliefKind
from support.every_case import each_case

S = 1_000_000_000


@each_case(
    ("text", "requested"),
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
        ("lag g at 90s", LagQuestion("g", 90 * S)),
        ("group g", GroupQuestion("g")),
        ("topic %RETRY%g at 1m", TopicQuestion("%RETRY%g", 60 * S)),
        ("stall orders/broker-a/3", StallQuestion(QueueQuestion("orders", "broker-a", 3))),
        ("stalled queue orders/broker-a/3 of g", StallQuestion(QueueQuestion("orders", "broker-a", 3, "g"))),
        ("stall queue orders/broker-a/3 at 5s", StallQuestion(QueueQuestion("orders", "broker-a", 3, None, 5 * S))),
        ("transaction 7F01 at 2s", TransactionQuestion("7F01", 2 * S)),
        ("message order-17", MessageQuestion("order-17")),
        ("message orders/broker-a/3@17", MessageQuestion(StoredAt("orders", "broker-a", 3, 17))),
        ("storm", StormQuestion()),
        ("storm of c1 at 30s", StormQuestion("c1", 30 * S)),
    ],
)
def test_words_become_a_question(text, requested):
    if requested is None:
        with pytest.raises(WhyError, match="expected a time behind at"):
            question([text])
    else:
        assert question([text]) == requested
        assert question(text.split()) == requested


@each_case("kind", list(BeliefKind))
def test_every_kind_of_belief_can_be_asked_about(kind):
    assert question([kind.value, "x"]) == BeliefQuestion(kind, "x")


@each_case(
    ("text", "why"),
    [
        (
            "",
            f"expected: {FORMS}",
        ),
        ("no c1 in", "expected: queue TOPIC/BROKER/ID"),
        ("no c1 in consumer_id g", "there is no question consumer_id; did you mean `consumer_ids g`?"),
        ("no c1 of g", "expected: no ITEM in KIND SUBJECT [of NODE] [at T]"),
        ("queue", "expected: queue TOPIC/BROKER/ID"),
        (
            "queue orders/broker-a",
            "expected a queue as TOPIC/BROKER/ID, such as orders/broker-a/3, not orders/broker-a",
        ),
        ("queue orders/broker-a/x", "expected a queue as TOPIC/BROKER/ID, such as orders/broker-a/3, not orders/b"),
        ("queue orders/broker-a/3 at noon", "expected a time such as 31.2s, 31200ms or 2m, not noon"),
        ("queue orders/broker-a/3 at -1s", "expected a time such as 31.2s, 31200ms or 2m, not -1s"),
        ("queue orders/broker-a/3 of", "expected a name behind of: queue TOPIC/BROKER/ID"),
        ("consumer_id g", "there is no question consumer_id; did you mean `consumer_ids g`?"),
        ("node broker-a of g", "expected: node NODE [at T]"),
        ("lagg g", "there is no question lagg; did you mean `lag g`?"),
        ("transction 7F01", "there is no question transction; did you mean `transaction 7F01`?"),
        ("stal queue orders/broker-a/3", "there is no question stal; did you mean `stall queue orders/broker-a/3`?"),
        ("zzz g", "there is no question zzz; expected: queue TOPIC/BROKER/ID"),
        ("lag", "expected: lag GROUP [at T]"),
        ("lag g of c1", "expected: lag GROUP [at T]"),
        ("stalled", "expected: stall TOPIC/BROKER/ID [of GROUP] [at T]"),
        ("storm g", "expected: storm [of CLIENT] [at T]"),
        ("storm of", "expected a name behind of: queue TOPIC/BROKER/ID"),
        ("message a b", "expected: message TOPIC/BROKER/ID@OFFSET [at T]"),
        ("route orders orders orders", "expected: queue TOPIC/BROKER/ID"),
    ],
)
def test_words_that_are_no_question_get_one_line_that_says_what_was_expected(text, why):
    with pytest.raises(WhyError) as refused:
        question([text])

    assert str(refused.value).startswith(why)
    assert "\n" not in str(refused.value)


@each_case("form", FORM_TABLE, ids=[form.words for form in FORM_TABLE])
def test_the_example_of_each_form_is_a_question(form):
    assert question([form.example])


@pytest.mark.parametrize(
    ("wrong", "known", "reported"),
    [
        ("billng", ("audit", "billing"), "there is no group billng; ask `lag billing`"),
        ("zzz", ("audit", "billing"), "there is no group zzz; groups are audit, billing; ask `lag audit`"),
        ("zzz", (), "there is no group zzz, as this run has no group; ask `storm` or `node NODE`"),
    ],
)
def test_an_unknown_name_leads_to_the_nearest_question_that_has_an_answer(wrong, known, reported):
    assert str(no_question_about("group", wrong, known, "lag {}")) == reported


def form_table():
    """The table for the README, in Markdown."""
    rows = [f"| `{form.words}` | {form.answers} | `{form.example}` |" for form in FORM_TABLE]
    return "\n".join(["| question | what it answers | for example |", "|---|---|---|", *rows])


def test_the_readme_has_the_table_of_all_questions():
    assert form_table() in (Path(__file__).parents[2] / "emulator" / "why" / "README.md").read_text()
