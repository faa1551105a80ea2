"""Members that one broker refuses and another does not: lists and views differ, as users and permissions want it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.inputs.shared import SharedInputs
from emulator.analysis.judge import broken, judge_run
from emulator.analysis.report import symptoms
from emulator.history.rows.row_classes import FrameCount
from emulator.history.steps import length_ns, merged, uncovered
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run
from nodes.protocol.codes import RequestCode, ResponseCode

S = 1_000_000_000
FILE = """
[scenario]
name = "denied-member"
run_for_s = 240
global_white_remote_addresses = ["127.1.10.1", "127.1.10.3", "127.1.100.1"]

[nameserver]
count = 1
options = { release = "4.9" }

[[broker]]
name = "broker-a"
options = { release = "4.9" }

# c2 needs an account here, and has none.
[[broker]]
name = "broker-b"
options = { release = "4.9", aclEnable = true }

[[account]]
access_key = "RocketMQ"
secret_key = "secret-of-RocketMQ"

[[topic]]
name = "orders"
queues = 4

[[consumer]]
group = "billing"
names = ["c1", "c2", "c3"]
topics = ["orders"]

[[producer]]
group = "shop"
topic = "orders"
rate_per_s = 5
"""
REFUSED = """
[scenario]
name = "denied-producer"
run_for_s = 20
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[broker.options]
authenticationEnabled = true
authorizationEnabled = true
authenticationMetadataProvider = "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"
authorizationMetadataProvider = "org.apache.rocketmq.auth.authorization.provider.LocalAuthorizationMetadataProvider"
migrateAuthFromV1Enabled = true
[[account]]
access_key = "till-user"
secret_key = "secret-of-till"
topic_perms = ["refunds=PUB"]
[[topic]]
name = "orders"
[[producer]]
group = "till"
topic = "orders"
rate_per_s = 1
options = { accessKey = "till-user", secretKey = "secret-of-till" }
"""
ROOT = '[[account]]\naccess_key = "root-user"\nsecret_key = "secret-of-root"\nadmin = true\n'
UNHEARD = '\n[[fault]]\ndo = "cut c3 broker-b one-way"\nat_s = 20\n'


def judged(text, runs):
    return judge_run(open_run(run_scenario(loads(text, "denied.toml"), runs=runs).path))


def test_a_member_that_one_broker_refuses_breaks_no_rule(tmp_path):
    report = judged(FILE, tmp_path)

    assert broken(report) == ()
    views = [row for row in report.rows["views"] if row.subject == "billing/orders"]
    assert sum(row.end_ns - row.start_ns for row in views) > 60 * S
    lag = next(item for item in symptoms(report) if item.kind.value == "consumer lag")
    assert lag.cause == "no disturbance: brokers and proxies refuse what clients ask"


def test_sends_that_permissions_refuse_are_put_down_to_them(tmp_path):
    failed = next(item for item in symptoms(judged(REFUSED, tmp_path)) if item.kind is SymptomKind.FAILED_SENDS)

    assert failed.text.startswith("60 of 60 attempts of producer-1 to send failed (60 refused, 0 unanswered)")
    assert failed.cause == "no disturbance: brokers and proxies refuse what clients ask"


@pytest.mark.parametrize(
    ("act", "cause"),
    [
        ("create-acl till-user Topic:refunds Pub Allow", "no disturbance: users and permissions do not allow it"),
        ("create-acl till-user Topic:orders Pub Deny", "create-acl till-user Topic:orders Pub Deny at 3.0 s"),
    ],
)
def test_an_act_that_allows_something_denies_nothing(tmp_path, act, cause):
    text = REFUSED.replace("rate_per_s = 1", "rate_per_s = 1\nstart_after_s = 5") + ROOT
    text = text.replace("migrateAuthFromV1Enabled = true", 'initAuthenticationUser = "root-user"')
    acts = ("create-user till-user account till-user", act)
    text += "".join(f'[[admin]]\nat_s = {at_s}\ndo = "{line}"\n' for at_s, line in enumerate(acts, 2))
    denied = next(item for item in symptoms(judged(text, tmp_path)) if item.kind is SymptomKind.DENIED)
    assert denied.cause == cause


def test_another_member_that_a_broker_does_not_hear_still_breaks_v6(tmp_path):
    assert "V6" in broken(judged(FILE + UNHEARD, tmp_path))


# --- which differences a refusal explains -----------------------------------------------------------------------------


@pytest.fixture
def refused():
    inputs = SharedInputs(RunFacts(100 * S, names={"127.1.10.1": "c1", "127.1.10.2": "c2", "127.1.10.3": "c3"}))
    code, denied = int(RequestCode.HEART_BEAT), int(ResponseCode.NO_PERMISSION)
    frames = [
        FrameCount(second, "delivered", broker, node, "response", code, status, 1)
        for node in ("c1", "c2", "c3")
        for broker in ("broker-a", "broker-b")
        for second in (10, 40, 70)
        for status in (denied if (node, broker) == ("c2", "broker-b") and second < 70 else 0,)
    ]
    list(inputs.refused.hear(frames))
    return inputs.refused


def view(*numbers, queues=8):
    return json.dumps({"cids": [f"127.1.10.{number}@1" for number in numbers], "queues": {"broker-a": queues}})


@pytest.mark.parametrize(
    ("views", "explained"),
    [
        ([view(1, 2, 3), view(1, 3)], [(10 * S, 70 * S)]),
        ([view(1, 2), view(1)], [(10 * S, 70 * S)]),
        ([view(1, 2, 3), view(1, 2)], []),
        ([view(1, 2, 3), view(1)], []),
        ([view(1, 2), view(1, queues=4)], []),
        ([view(1, 2), view(1, 2)], []),
        (['["127.1.10.1@1", "127.1.10.2@1"]', '["127.1.10.1@1"]'], [(10 * S, 70 * S)]),
        (['{"broker-a": 8}', '{"broker-a": 4}'], []),
    ],
)
def test_views_that_differ_in_refused_members_alone_are_explained(refused, views, explained):
    assert list(refused.apart(views)) == explained


def test_a_member_is_refused_from_the_first_refusal_to_the_next_answer(refused):
    assert list(refused.in_part(["c2"])) == [(10 * S, 70 * S)]
    assert list(refused.in_part(["c2"], ["broker-b"])) == [(10 * S, 70 * S)]
    assert list(refused.in_part(["c2"], ["broker-a"])) == []
    assert list(refused.in_part(["c1", "c3"])) == []


spans = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)).map(lambda item: (item[0], item[0] + item[1])))


@given(spans, spans)
def test_what_is_uncovered_is_what_no_cover_has(parts, covers):
    found = uncovered(merged(parts), merged(covers))
    outside = [t for start, end in merged(parts) for t in range(start, end) if not any(a <= t < b for a, b in covers)]

    assert [t for start, end in found for t in range(start, end)] == outside
    assert length_ns(found) == len(outside)
