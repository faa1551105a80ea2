"""ACL 2.0: the entry that decides, against a small model; and what no case of the real classes has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.auth.errors import AuthorizationError
from nodes.broker.tables.auth.evaluators import CacheLimits, DecisionCache
from nodes.broker.tables.auth.policies import Acl, Policy, PolicyEntry
from nodes.broker.tables.auth.resources import Resource
from nodes.protocol.auth import Action, Decision, PolicyType

ORDERS = Resource.of_topic("orders")
KEYS = st.sampled_from(["Topic:o*", "Topic:ord*", "Topic:orders*", "Topic:*", "Topic:bills", "Group:orders", "Group:*"])
ENTRIES = st.builds(
    lambda key, actions, decision: PolicyEntry(Resource.of(key), tuple(actions), (), decision),
    KEYS,
    st.lists(st.sampled_from([Action.PUB, Action.SUB, Action.ALL]), min_size=1, max_size=2),
    st.sampled_from(Decision),
)
POLICIES = st.lists(ENTRIES, max_size=6)


def names(entry, topic="orders"):
    kind, _, name = entry.resource.key.partition(":")
    return kind == "Topic" and (topic.startswith(name[:-1]) if name.endswith("*") else topic == name)


def can_publish(entries):
    """The model, for entries with prefixes: the shortest prefix decides, and of two alike the one that allows."""
    able = [entry for entry in entries if names(entry) and {Action.PUB, Action.ALL} & set(entry.actions)]
    shortest = min((len(entry.resource.name or "") for entry in able), default=None)
    decisions = [entry.decision for entry in able if len(entry.resource.name or "") == shortest]
    return (Decision.ALLOW in decisions) if decisions else None


@given(POLICIES.filter(lambda entries: not any(entry.resource.key == "Topic:*" for entry in entries)), POLICIES)
def test_the_shortest_prefix_decides_and_the_default_policy_only_where_no_custom_entry_matches(custom, default):
    default = [entry for entry in default if entry.resource.key != "Topic:*"]
    acl = Acl("User:shop", (Policy(PolicyType.CUSTOM, tuple(custom)), Policy(PolicyType.DEFAULT, tuple(default))))

    entry = acl.deciding(ORDERS, (Action.PUB,), "10.0.0.1")

    expected = can_publish(custom)
    expected = can_publish(default) if expected is None else expected
    assert (None if entry is None else entry.decision is Decision.ALLOW) == expected


@given(POLICIES, POLICIES)
def test_an_update_leaves_one_entry_for_each_resource_and_that_is_the_last_one(first, second):
    policy = Policy(PolicyType.CUSTOM, ()).updated(first).updated(second)

    last = {entry.resource: entry for entry in [*first, *second]}
    assert list(policy.entries) == list(last.values())


@given(POLICIES, KEYS)
def test_an_entry_that_was_removed_decides_no_more(entries, key):
    policy = Policy(PolicyType.CUSTOM, ()).updated(entries)

    left = Acl("User:shop", (policy,)).without(PolicyType.CUSTOM, Resource.of(key))

    assert key not in [entry.resource.key for policy in left.policies for entry in policy.entries]
    assert all(policy.entries for policy in left.policies)


def test_a_full_cache_of_decisions_drops_the_oldest():
    cache, asked = DecisionCache(CacheLimits(max_num=2, expired_s=60)), []
    for key in ("a", "b", "c", "b", "a"):
        cache.decide(key, lambda key=key: asked.append(key), 0)

    assert asked == ["a", "b", "c", "a"]


def test_a_cached_refusal_holds_until_its_time_is_over():
    cache, answers = DecisionCache(CacheLimits(max_num=10, expired_s=60)), [AuthorizationError("no"), None]

    def check():
        answer = answers.pop(0)
        if answer is not None:
            raise answer

    for now_ms in (0, 59_999):
        with pytest.raises(AuthorizationError, match="no"):
            cache.decide("key", check, now_ms)
    cache.decide("key", check, 60_000)

    assert answers == []
