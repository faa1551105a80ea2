"""What became of a transaction: both ends acted upon, discarded, committed twice by a wrong clock, and calm ones."""

import pytest

from emulator.spec import loads
from emulator.why.question import WhyError
from why.why_runs import has, requested

PLAN = """
[scenario]
name = "transactions"
seed = 1
run_for_s = {run_for_s}
start_spread_s = 0
[nameserver]
count = 1
[[broker]]
name = "broker-a"
options = {{ transactionCheckMax = 2 }}
[[topic]]
name = "orders"
queues = 2
[[consumer]]
group = "billing"
topics = ["orders"]
[[producer]]
name = "shop"
group = "shop"
topic = "orders"
rate_per_s = 1
messages = 1
local_transaction = "{local}"
local_transaction_s = {local_s}
check_local_transaction = "{check}"
"""
ID = "7F016401051500000000000000040000"


def run(tmp_path, local="commit", local_s=0, check="commit", run_for_s=100, **more):
    text = PLAN.format(run_for_s=run_for_s, local=local, local_s=local_s, check=check)
    return requested(loads(text, "transactions"), tmp_path, **more)


def test_a_commit_at_once_is_reported_with_who_consumed_it(tmp_path):
    reported = run(tmp_path).why(f"transaction {ID}")

    assert reported[0].startswith(f"transaction {ID} was committed at 0.0")
    assert reported[0].endswith("consumed by group billing 1 time")
    assert has(reported, "shop", "decided commit by itself")
    assert has(reported, "carried out the commit, stored orders/broker-a/1@0")
    assert not has(reported, "check")


def test_a_rollback_of_a_check_and_a_commit_later_are_both_named_with_their_instants(tmp_path):
    reported = run(tmp_path, local_s=65, check="rollback").why(f"transaction {ID}")

    assert "was rolled back at 30.002 s and committed at 65.013 s: the broker acted upon both" in reported[0]
    assert has(reported, "so the message that was rolled back was delivered")
    assert has(reported, "the first end came from shop, which decided rollback when it was checked at 30.001 s")
    assert has(reported, "the second from shop, which decided commit by itself at 65.012 s")


def test_a_rollback_alone_reaches_no_consumer(tmp_path):
    reported = run(tmp_path, local="rollback").why(f"transaction {ID}")

    assert reported[0].endswith("no consumer gets its message")
    assert not has(reported, "acted upon both")


def test_a_transaction_that_was_discarded_and_committed_late_is_named_with_its_checks(tmp_path):
    reported = run(tmp_path, local_s=90, check="unknown", run_for_s=120).why(f"transaction {ID}")

    assert "was discarded at 60.000 s after 2 checks, and committed at 90.0" in reported[0]
    assert has(reported, "discarded it to TRANS_CHECK_MAX_TIME_TOPIC")


def test_a_transaction_that_was_discarded_and_never_ended(tmp_path):
    reported = run(tmp_path, local="unknown", check="unknown").why(f"transaction {ID}")

    assert "was discarded at 60.000 s after 2 checks: no end of it had reached the broker" in reported[0]


def test_an_open_transaction_says_since_when_and_how_often_it_was_checked(tmp_path):
    reported = run(tmp_path, local="unknown", check="unknown").why(f"transaction {ID} at 40s")

    assert "is open: its half message is stored since 0.011 s, with 1 check so far" in reported[0]


def test_a_transaction_that_a_wrong_clock_had_checked_too_early_names_the_clock(tmp_path):
    text = PLAN.format(run_for_s=70, local="commit", local_s=0, check="commit")
    text = text.replace("rate_per_s = 1\nmessages = 1", "rate_per_s = 20")
    skewed = requested(loads(text, "transactions"), tmp_path, {30: "skew shop -20000"})
    reported = skewed.why("transaction 7F0164010515000000000000908C0474")

    assert "was committed 2 times, at 57.007 s and 61.002 s; consumed by group billing 2 times" in reported[0]
    assert has(reported, "skew-1 (clock skew shop, offset_ms=-20000) since 30.000 s", "the broker checked it too early")


def test_an_unknown_id_leads_to_a_known_one_and_an_early_instant_to_the_begin(tmp_path):
    ended = run(tmp_path)
    with pytest.raises(WhyError) as unknown:
        ended.why(f"transaction {ID[:-1]}")
    with pytest.raises(WhyError) as early:
        ended.why(f"transaction {ID} at 1ms")

    assert str(unknown.value) == f"there is no transaction {ID[:-1]}; ask `transaction {ID}`"
    assert str(early.value) == f"transaction {ID} began later, at 0.011 s; ask `transaction {ID}`"
