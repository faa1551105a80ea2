"""The leases of a lock service."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.lease_service.tables.leases import LeaseTable

steps = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "renew", "release"]),
        st.sampled_from("kl"),
        st.sampled_from("abc"),
        st.integers(0, 15),
    )
)


@given(steps)
def test_a_key_has_one_holder_at_a_time_and_each_grant_a_larger_token(steps):
    table, now_ms, tokens = LeaseTable(), 0, [0]
    mine = {}

    for subject, key, holder, pause_ms in steps:
        now_ms += pause_ms
        valid = {node: item for (k, node), item in mine.items() if k == key and now_ms < item.expires_ms}
        assert len(valid) <= 1
        if subject == "acquire":
            lease = table.acquire(key, holder, 20, now_ms)
            assert (lease is None) == bool(valid and holder not in valid)
            if lease is not None:
                assert lease.expires_ms == now_ms + 20
                if holder in valid:
                    assert lease.token == valid[holder].token
                else:
                    assert lease.token > max(tokens)
                tokens.append(lease.token)
                mine[key, holder] = lease
        elif (key, holder) in mine:
            known = mine[key, holder]
            if subject == "renew":
                lease = table.renew(key, known.token, 20, now_ms)
                assert (lease is not None) == (holder in valid)
                if lease is not None:
                    mine[key, holder] = lease
            else:
                assert table.release(key, known.token) or holder not in valid
                del mine[key, holder]


def test_an_old_token_neither_renews_nor_releases_the_lease_of_another():
    table = LeaseTable()
    first = table.acquire("k", "a", 10, 0)
    second = table.acquire("k", "b", 10, 10)

    assert (first.token, second.token) == (1, 2)
    assert table.renew("k", first.token, 10, 11) is None
    assert not table.release("k", first.token)
    assert table.leases["k"] == second


def test_tokens_grow_on_after_a_restart():
    table = LeaseTable()
    table.acquire("k", "a", 10, 0)

    again = LeaseTable(table.leases, table.last_token)

    assert again.acquire("k", "b", 10, 5) is None
    assert again.acquire("l", "b", 10, 5).token == 2
