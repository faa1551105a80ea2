import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodes.broker.tables.clients.consumers import ConsumerGroupEvent, ConsumerManager
from nodes.protocol.model import ConsumeFromWhere, ConsumerData, ConsumeType, MessageModel, SubscriptionData

CHANGE = ConsumerGroupEvent.CHANGE


def data(group="g", topics=("t",), version=1, model=MessageModel.CLUSTERING):
    return ConsumerData(
        group,
        ConsumeType.CONSUME_PASSIVELY,
        model,
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        tuple(SubscriptionData(topic, sub_version=version, sub_string=f"v{version}") for topic in topics),
    )


def heartbeat(table, channel, client_id=None, *, now_ms=0, notify_enabled=True, **fields):
    return table.register_consumer(
        channel, client_id or f"c-{channel}", data(**fields), now_ms=now_ms, notify_enabled=notify_enabled
    )


def kinds(events):
    return [event.kind.value for event in events]


@pytest.fixture
def table():
    return ConsumerManager()


def test_a_new_member_is_a_change_reported_between_client_and_group_registration(table):
    heartbeat(table, "x1")
    update = heartbeat(table, "x2")
    assert kinds(update.events) == ["CLIENT_REGISTER", "CHANGE", "REGISTER"]
    assert [member.channel for member in update.events[1].members] == ["x1", "x2"]
    assert kinds(heartbeat(table, "x2").events) == ["REGISTER"]


@pytest.mark.trap("Y18")
@pytest.mark.trap("C1")
def test_expired_members_leave_without_a_change(table):
    heartbeat(table, "x1")
    heartbeat(table, "x2", now_ms=1)
    assert table.scan_not_active_channels(120_000) == ((), ())
    channels, events = table.scan_not_active_channels(120_001)
    assert channels == ("x1",)
    assert kinds(events) == ["CLIENT_UNREGISTER"]
    assert table.client_ids("g") == ("c-x2",)
    assert table.channel_close_event("x1").events == ()


@pytest.mark.trap("C5")
def test_two_connections_of_one_client_are_two_members(table):
    heartbeat(table, "x1", "c1")
    heartbeat(table, "x2", "c1")
    heartbeat(table, "x3", "c2")
    assert table.client_ids("g") == ("c1", "c1", "c2")


@pytest.mark.trap("C14")
def test_members_with_different_topics_erase_each_others_subscriptions(table):
    heartbeat(table, "x1", topics=("a",))
    for _ in range(2):
        assert "CHANGE" in kinds(heartbeat(table, "x2", topics=("b",)).events)
        assert table.find_subscription("g", "a") is None
        assert "CHANGE" in kinds(heartbeat(table, "x1", topics=("a",)).events)
        assert table.find_subscription("g", "b") is None


@pytest.mark.trap("C15")
def test_only_a_larger_version_replaces_a_subscription_and_none_is_a_change(table):
    heartbeat(table, "x1", version=5)
    assert kinds(heartbeat(table, "x1", version=4).events) == ["REGISTER"]
    assert table.find_subscription("g", "t").sub_string == "v5"
    assert kinds(heartbeat(table, "x1", version=6).events) == ["REGISTER"]
    assert table.find_subscription("g", "t").sub_string == "v6"


@pytest.mark.trap("C28")
def test_the_groups_switch_silences_joining_and_leaving_but_not_a_closed_connection(table):
    heartbeat(table, "x0")
    assert "CHANGE" not in kinds(heartbeat(table, "x1", notify_enabled=False).events)
    assert "CHANGE" not in kinds(table.unregister_consumer("g", "x1", "c-x1", notify_enabled=False).events)
    heartbeat(table, "x1", notify_enabled=False)
    assert "CHANGE" in kinds(table.channel_close_event("x1").events)


def test_broadcasting_groups_have_no_changes(table):
    assert "CHANGE" not in kinds(heartbeat(table, "x1", model=MessageModel.BROADCASTING).events)
    assert kinds(table.channel_close_event("x1").events) == ["CLIENT_UNREGISTER", "UNREGISTER"]


def test_leaving_is_a_change_even_for_one_who_is_no_member(table):
    heartbeat(table, "x1")
    assert kinds(table.unregister_consumer("g", "stranger", "c").events) == ["CHANGE"]
    assert table.unregister_consumer("nobody", "x1", "c").events == ()


def test_a_closed_connection_leaves_all_groups(table):
    for group in ("g", "h"):
        heartbeat(table, "x1", group=group)
        heartbeat(table, "x2", group=group)
    update = table.channel_close_event("x1")
    assert [event.group for event in update.events if event.kind is CHANGE] == ["g", "h"]
    assert (table.client_ids("g"), table.client_ids("h")) == (("c-x2",), ("c-x2",))


@pytest.mark.trap("Y18")
def test_the_fast_close_path_misses_members_that_never_sent_subscriptions():
    table = ConsumerManager(enable_fast_channel_event_process=True)
    update = table.register_consumer_without_sub("x1", "c1", data(), now_ms=0)
    assert kinds(update.events) == ["CHANGE"]
    assert table.channel_close_event("x1").changed is False
    assert table.client_ids("g") == ("c1",)


def test_the_fast_close_path_has_a_change_for_broadcasting_groups():
    table = ConsumerManager(enable_fast_channel_event_process=True)
    heartbeat(table, "x1", model=MessageModel.BROADCASTING)
    heartbeat(table, "x2", model=MessageModel.BROADCASTING)
    assert kinds(table.channel_close_event("x1").events) == ["CLIENT_UNREGISTER", "CHANGE"]


@pytest.mark.trap("Y18")
def test_the_index_of_topics_holds_the_topic_itself_even_when_no_one_subscribes_to_it_any_more(table):
    heartbeat(table, "x1", topics=("t", "u"))
    heartbeat(table, "x1", topics=("t",), version=2)
    assert table.group("g").topics == ("t",)
    assert table.topic_groups == {"t": ("t",), "u": ("u",)}


def test_what_pulls_report_is_second_choice_and_no_member(table):
    table.compensate_basic_consumer_info("g", ConsumeType.CONSUME_ACTIVELY, MessageModel.CLUSTERING)
    table.compensate_subscribe_data("g", SubscriptionData("t", sub_string="pulled"))
    assert table.client_ids("g") == ()
    assert table.find_subscription("g", "t").sub_string == "pulled"
    assert table.find_subscription("g", "t", compensated=False) is None
    table.scan_not_active_channels(600_001)
    assert table.find_subscription("g", "t") is None


class MembersAgainstAModel(RuleBasedStateMachine):
    """The model: channel -> (client id, last heartbeat), and the set of topics of the last heartbeat."""

    def __init__(self):
        super().__init__()
        self.table = ConsumerManager(channel_expired_timeout_ms=50)
        self.members = {}
        self.topics = []
        self.now_ms = 0

    @rule(channel=st.integers(0, 3), client=st.sampled_from("ab"), topics=st.lists(st.sampled_from("tu"), unique=True))
    def heartbeats(self, channel, client, topics):
        update = heartbeat(self.table, channel, client, now_ms=self.now_ms, topics=topics)
        assert update.changed == (channel not in self.members or sorted(topics) != self.topics)
        assert (CHANGE in [event.kind for event in update.events]) == update.changed
        self.members[channel] = (client, self.now_ms)
        self.topics = sorted(topics)

    @rule(channel=st.integers(0, 3))
    def leaves(self, channel):
        there = bool(self.members)
        update = self.table.unregister_consumer("g", channel, "a")
        assert update.changed == (channel in self.members)
        assert (CHANGE in [event.kind for event in update.events]) == there
        self.members.pop(channel, None)

    @rule(channel=st.integers(0, 3))
    def closes(self, channel):
        assert self.table.channel_close_event(channel).changed == (channel in self.members)
        self.members.pop(channel, None)

    @rule(passed_ms=st.integers(1, 60))
    def scans(self, passed_ms):
        self.now_ms += passed_ms
        channels, events = self.table.scan_not_active_channels(self.now_ms)
        assert sorted(channels) == sorted(c for c, (_, at_ms) in self.members.items() if self.now_ms - at_ms > 50)
        assert CHANGE not in [event.kind for event in events]
        for channel in channels:
            del self.members[channel]

    @invariant()
    def the_list_has_one_client_id_per_channel(self):
        if not self.members:
            self.topics = []
        assert self.table.client_ids("g") == tuple(sorted(client for client, _ in self.members.values()))
        assert (self.table.group("g") is None) == (not self.members)


TestMembers = MembersAgainstAModel.TestCase
TestMembers.settings = settings(max_examples=40, stateful_step_count=25)
