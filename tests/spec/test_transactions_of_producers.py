"""Transactions of producers, as scenario files describe them."""

import pytest

from emulator.spec import SpecError, from_dict, loads, to_dict
from nodes.client.producer.local_transactions import LocalTransactions, LocalTransactionState
from support.every_case import each_case
from support.mistakes import only_mistake

TEXT = """
[scenario]
name = "transactions"
run_for_s = 60
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
[[producer]]
group = "shop"
topic = "orders"
"""
COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState


@each_case(
    ("answer", "expected"),
    [
        ("", None),
        ("transactional = true", LocalTransactions(COMMIT)),
        ("transactional = false", None),
        ('transactional = true\nlocal_transaction = "rollback"', LocalTransactions(ROLLBACK)),
        ('local_transaction = "rollback"', LocalTransactions(ROLLBACK)),
        ('local_transaction = "commit"\nlocal_transaction_s = 1.5', LocalTransactions(COMMIT, 1_500)),
        (
            'local_transaction = "unknown"\nlocal_transaction_ms = 7\ncheck_local_transaction = "commit"',
            LocalTransactions(UNKNOWN, 7, COMMIT),
        ),
    ],
)
def test_a_producer_says_how_its_transactions_end_and_what_it_answers(answer, expected):
    scenario = loads(TEXT + answer, "text")

    assert scenario.producers[0].transactions == expected
    assert from_dict(to_dict(scenario)) == scenario


@each_case(
    ("answer", "reported"),
    [
        ('local_transaction = "perhaps"', "local_transaction: expected one of commit, rollback, unknown, not"),
        (
            'local_transaction = "commit"\nlocal_transaction_ms = -1',
            "producer[0].local_transaction_ms: expected a whole number of milliseconds >= 0",
        ),
        ("local_transaction = true", "producer[0].local_transaction: expected a text"),
        (
            'check_local_transaction = "commit"',
            "producer[0].check_local_transaction: expected transactional or local_transaction with it",
        ),
        (
            "local_transaction_s = 1",
            "producer[0].local_transaction_s: expected transactional or local_transaction with it",
        ),
    ],
)
def test_a_mistake_is_reported_in_one_line(answer, reported):
    with pytest.raises(SpecError) as caught:
        loads(TEXT + answer, "text")
    assert reported in only_mistake(caught.value)
    assert "\n" not in only_mistake(caught.value)
