"""What the loss of a master or of a leading controller did, from a handful of rows."""

import attrs

from nodes.beliefs import BeliefKind
from studies.timelines.elections import ConsumedMessage, ElectionStory, SentMessage, reported
from studies.timelines.events import BeliefRow

S = 10**9


def state(at_s, master, epoch, in_sync, node="n0"):
    value = {"master": master, "epoch": epoch, "in_sync": in_sync, "in_sync_epoch": 1}
    return BeliefRow(at_s * S, node, BeliefKind.SYNC_STATE, "ba", value)


def route(at_s, node, master):
    return BeliefRow(at_s * S, node, BeliefKind.ROUTE, "orders", {"ba": {"addrs": {"0": master} if master else {}}})


def role(at_s, node, serves):
    return BeliefRow(at_s * S, node, BeliefKind.CONTROLLER_ROLE, node, {"role": "leader", "serves": serves})


def sent(at_s, node, offset):
    return SentMessage((0, offset, at_s), node, at_s * S, at_s * S)


STORY = ElectionStory(
    beliefs=(
        *(state(1, 1, 1, [1, 2, 3]), route(1, "ns", "old"), route(1, "p", "old"), role(1, "n0", True)),
        *(route(100, "ns", None), state(101, None, 2, [1, 2, 3]), state(102, 2, 3, [2]), route(103, "ns", "new")),
        *(role(104, "n1", True), route(110, "p", "new"), state(111, 2, 3, [2, 3]), state(137, 2, 3, [1, 2, 3])),
        role(138, "n0", True),
    ),
    sent=(sent(80, "b1", 1), sent(96, "b1", 2), sent(99, "b1", 3), sent(112, "b2", 4), sent(113, "b2", 5)),
    consumed=tuple(
        ConsumedMessage(at_s * S, (0, offset, sent_s))
        for at_s, offset, sent_s in ((96, 2, 96), (114, 4, 112), (115, 2, 96), (116, 5, 113))
    ),
    group="ba",
    topic="orders",
    nameservers=("ns",),
    producer="p",
    victim="b1",
    is_controller=False,
    fault_ns=100 * S,
    back_ns=130 * S,
)
MESSAGES = {"pause_of_sends": (13.0,), "acknowledged_lost": (1.0,), "consumed_twice": (1.0,)}


def test_a_master_is_elected_shown_known_written_to_and_joined():
    assert reported(STORY) == {
        "elected": (2.0,),
        "ns_master": (3.0,),
        "client_route": (10.0,),
        "writable": (12.0,),
        "consumed_again": (14.0,),
        "second_in_sync": (11.0,),
        "in_sync_again": (7.0,),
        **MESSAGES,
    }


def test_another_controller_leads_and_the_epoch_reports_how_many_elections_there_were():
    lost = attrs.evolve(STORY, is_controller=True, victim="n0")

    assert reported(lost) == {"leader": (4.0,), "answers_again": (8.0,), "elections": (2.0,), **MESSAGES}


def test_what_never_happens_is_missing():
    quiet = attrs.evolve(STORY, beliefs=STORY.beliefs[:4], consumed=STORY.consumed[:1])

    assert reported(quiet) == {"writable": (12.0,), **MESSAGES, "acknowledged_lost": (3.0,), "consumed_twice": (0.0,)}
