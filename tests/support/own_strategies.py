"""Strategies and hash functions of a user's own, good and bad, for scenarios to name."""

from nodes.protocol.model import MessageQueue

NO_FUNCTION = 3


def turned(_group, cid, queues, cids):
    """The first member gets the last queue."""
    return list(reversed(queues))[cids.index(cid) :: len(cids)]


def throws(_group, _cid, queues, cids):
    return queues[len(queues) // (len(cids) - 1)]


def throws_for_three(group, cid, queues, cids):
    if len(cids) == 3:
        raise LookupError("three are\ntoo many")
    return turned(group, cid, queues, cids)


def exits(_group, _cid, _queues, _cids):
    raise SystemExit(3)


def everything(_group, _cid, queues, _cids):
    return queues


def only_the_first(_group, cid, queues, cids):
    return queues[:1] if cid == cids[0] else None


def foreign(group, cid, queues, cids):
    """A queue that exists nowhere, and one of another topic."""
    mine = turned(group, cid, queues, cids)
    if queues[0].topic == "orders" and cid == cids[0]:
        mine += [MessageQueue("orders", "broker-z", 0), MessageQueue("others", "broker-a", 0)]
    return mine


def texts(_group, _cid, queues, _cids):
    return [str(queue) for queue in queues]


def unsteady(group, cid, queues, cids, *, calls=[]):  # noqa: B006
    calls.append(cid)
    return turned(group, cid, queues, cids) if len(calls) % 3 else queues


def length(text):
    """A poor hash: members of one length are at one place."""
    return len(text)


def last_digits(text):
    return int("".join(filter(str.isdigit, text))[-4:] or 0)


def half(text):
    return len(text) / 2


def hash_throws(text):
    raise KeyError(text)
