import pytest

from nodes.controller.tables.heartbeats import BrokerHeartbeats, BrokerIdentity
from nodes.protocol.headers import BrokerHeartbeatRequestHeader

TIMEOUT_MS = 10_000


class Live(BrokerHeartbeats):
    """With brokers of one group, named by their ids."""

    def beat(self, broker_id, channel="x", *, now_ms=0, epoch=1, max_offset=0, confirm_offset=0):
        header = BrokerHeartbeatRequestHeader(
            "c", f"a-{channel}", "b", broker_id, epoch, max_offset, confirm_offset, TIMEOUT_MS, 5
        )
        self.on_heartbeat(named(broker_id), header, channel, now_ms=now_ms)
        return self.table[named(broker_id)]

    def is_alive(self, broker_id, now_ms):
        return self.alive_at(now_ms)("c", "b", broker_id) is not None


def named(broker_id):
    return BrokerIdentity("c", "b", broker_id)


def test_a_broker_lives_until_its_time_out_and_is_evicted_after_it():
    live = Live()
    live.beat(1)

    assert live.is_alive(1, TIMEOUT_MS)
    assert not live.is_alive(1, TIMEOUT_MS + 1)
    assert live.evict_silent(TIMEOUT_MS) == ()
    assert live.evict_silent(TIMEOUT_MS + 1) == ((named(1), "x"),)
    assert live.table == {}


def test_a_broker_that_is_not_evicted_yet_comes_back_with_a_heartbeat():
    live = Live()
    live.beat(1)
    live.beat(1, now_ms=TIMEOUT_MS + 1)

    assert live.is_alive(1, TIMEOUT_MS + 1)


def test_no_one_is_alive_without_a_cluster_name_or_under_another():
    live = Live()
    live.beat(1)

    assert live.alive_at(0)(None, "b", 1) is None
    assert live.alive_at(0)("other", "b", 1) is None


@pytest.mark.trap("K8")
def test_the_offset_of_a_live_broker_does_not_go_down_with_its_log():
    live = Live()
    live.beat(1, epoch=1, max_offset=900)

    assert live.beat(1, epoch=1, max_offset=100).max_offset == 900
    assert live.beat(1, epoch=2, max_offset=100).max_offset == 100


@pytest.mark.trap("K18")
def test_the_confirm_offset_of_the_first_heartbeat_is_dropped_until_the_log_grows():
    live = Live()

    assert live.beat(1, max_offset=9, confirm_offset=9).confirm_offset == 0
    assert live.beat(1, max_offset=9, confirm_offset=9).confirm_offset == 0
    assert live.beat(1, max_offset=10, confirm_offset=9).confirm_offset == 9


@pytest.mark.trap("K19")
@pytest.mark.trap("M72")
def test_the_first_channel_is_retained_so_its_end_evicts_who_has_long_reconnected():
    live = Live()
    live.beat(1, "first")
    assert live.beat(1, "second").channel == "first"

    assert live.on_channel_close("second") is None
    assert live.is_alive(1, 0)
    assert live.on_channel_close("first") == named(1)
    assert not live.is_alive(1, 0)


@pytest.mark.trap("K20")
def test_of_brokers_that_share_a_channel_a_close_evicts_one_and_a_scan_gives_the_channel_to_be_closed():
    live = Live()
    live.beat(1, "shared")
    live.beat(2, "shared", now_ms=5_000)
    live.beat(3, "shared", now_ms=5_000)

    ((silent, channel),) = live.evict_silent(TIMEOUT_MS + 1)
    assert (silent, live.is_alive(2, TIMEOUT_MS + 1)) == (named(1), True)
    assert live.on_channel_close(channel) == named(2)
    assert live.is_alive(3, TIMEOUT_MS + 1)
