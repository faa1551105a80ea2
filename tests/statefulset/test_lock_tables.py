"""The tables of lock services other than leases, and of fencing tokens."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.clients.fencing_tokens import FencingTokens, FencingVerdict
from nodes.lease_service.tables.advisory_locks import AdvisoryLockTable
from nodes.lease_service.tables.items import ItemTable, LockItem
from nodes.lease_service.tables.leases import BlobLeaseTable
from nodes.lease_service.tables.sessions import SessionTable

TICK_MS = 2_000


@given(st.lists(st.tuples(st.sampled_from("kl"), st.integers(1, 4), st.sampled_from([None, 1, 2, 3, 4]))))
def test_an_item_is_written_only_over_the_version_that_the_writer_has_seen(writes):
    table, versions = ItemTable(), {}
    for key, version, expected in writes:
        written = table.put(key, LockItem("a", version, 15_000, 1), expected)
        assert written == (versions.get(key) == expected)
        if written:
            versions[key] = version
        assert {name: item.record_version for name, item in table.items.items()} == versions


@given(
    st.lists(
        st.tuples(st.sampled_from(["open", "touch", "create", "delete"]), st.integers(0, 2), st.integers(0, 9_000))
    )
)
def test_a_node_lives_as_long_as_its_session_and_the_next_one_has_a_larger_number(steps):
    table, now_ms, opened, heard, numbers = SessionTable(TICK_MS, 0), 0, {}, {}, [0]
    for subject, client, pause_ms in steps:
        now_ms += pause_ms
        for session_id in table.expired(now_ms):
            assert now_ms - heard[session_id] >= 15_000
            table.close(session_id)
            assert all(node.session_id != session_id for node in table.nodes.values())
        session_id = opened.get(client)
        if subject == "open":
            opened[client] = table.open(f"c{client}", 15_000, now_ms)
            heard[opened[client]] = now_ms
        elif session_id is not None and table.touch(session_id, now_ms):
            heard[session_id] = now_ms
            before = table.nodes.get("k")
            if subject == "create":
                node = table.create(session_id, "k")
                assert (node is None) == (before is not None and before.session_id != session_id)
                if before is None:
                    assert node.czxid > max(numbers)
                    numbers.append(node.czxid)
            elif subject == "delete":
                assert table.delete(session_id, "k") == (before is not None and before.session_id == session_id)


def test_sessions_expire_at_ticks_after_their_time_out_which_lies_between_2_and_20_ticks():
    table = SessionTable(TICK_MS, 0)
    short, usual, long = (table.open("c", timeout_ms, 1_500) for timeout_ms in (1, 15_000, 10**6))

    assert [table.sessions[number].timeout_ms for number in (short, usual, long)] == [4_000, 15_000, 40_000]
    assert table.sessions[usual].expires_ms == 18_000
    assert table.expired(17_999) == (short,)
    assert table.expired(18_000) == (short, usual)


def test_the_sessions_of_an_earlier_process_have_their_whole_time_again():
    table = SessionTable(TICK_MS, 100_000, {7: ("c", 15_000)})

    assert table.sessions[7].expires_ms == 116_000


def test_an_advisory_lock_belongs_to_a_connection_and_ends_with_it():
    table = AdvisoryLockTable(last_token=5)
    first = table.try_lock("k", 1, "c")

    assert first.token == 6
    assert table.try_lock("k", 2, "c") is None
    assert table.try_lock("k", 1, "c") == first
    assert not table.unlock("k", 2)
    assert table.end_connection(1) == ("k",)
    assert table.try_lock("k", 2, "c").token == 7


def test_an_expired_lease_of_a_blob_is_renewed_unless_someone_has_taken_it():
    table = BlobLeaseTable()
    lease = table.acquire("k", "a", 15_000, 0)

    assert table.renew("k", lease.token, 15_000, 60_000).token == lease.token
    assert table.acquire("k", "b", 15_000, 80_000).token > lease.token
    assert table.renew("k", lease.token, 15_000, 81_000) is None


@given(st.lists(st.integers(0, 9)))
def test_a_token_is_refused_if_a_greater_one_was_seen(tokens):
    table, greatest = FencingTokens(), None
    for token in tokens:
        verdict = table.judge("k", token)
        if greatest is not None and token < greatest:
            assert verdict is FencingVerdict.REFUSED
        else:
            assert verdict is (FencingVerdict.SAME if token == greatest else FencingVerdict.LATER)
            greatest = token
        assert table.greatest["k"] == greatest
