from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nodes.dledger.member import HEARTBEAT_MS, SILENCE_MS, DLedgerMember, MemberRole, StoredState
from nodes.protocol.dledger import LogEntry, PushRequest, PushResponse, VoteRequest, VoteResponse
from support.examples import DRAWN

PEERS = ("n0", "n1", "n2")


ROUND_MS = 2_500
"""How long a round of votes waits here."""


def member(self_id="n0", peers=PEERS, retained=None, now_ms=0, wait_ms=500):
    return DLedgerMember(
        self_id,
        peers,
        retained=retained or StoredState(),
        draw_vote_wait_ms=lambda: wait_ms,
        draw_round_ms=lambda: ROUND_MS,
        now_ms=now_ms,
    )


def test_an_election_may_compare_another_log_than_that_of_the_member():
    def granted(last_term, last_index):
        voter = DLedgerMember(
            "n0",
            PEERS,
            retained=StoredState(),
            draw_vote_wait_ms=lambda: 500,
            draw_round_ms=lambda: ROUND_MS,
            now_ms=0,
            position=lambda: (2, 500),
        )
        return voter.on_vote_request(VoteRequest(9, "n1", last_index, last_term), 0).granted

    assert granted(2, 500)
    assert granted(3, 100)
    assert not granted(2, 499)
    assert not granted(1, 900)


def leader(now_ms=0):
    """n0 with the votes of n0 and n1."""
    n0 = member()
    n0.tick(now_ms)
    n0.on_vote_response("n1", VoteResponse(1, granted=True), now_ms)
    assert n0.role is MemberRole.LEADER
    return n0


def test_a_group_of_one_leads_itself_and_commits_at_once():
    alone = member(peers=("n0",))
    alone.tick(0)
    count, outgoing = alone.append("x")

    assert (alone.role, alone.leader_id, count, alone.committed, outgoing) == (MemberRole.LEADER, "n0", 1, 1, [])


def test_a_follower_asks_for_votes_when_three_heartbeats_are_missing():
    n1 = member("n1")
    n1.on_push_request(PushRequest(1, "n0", 0, 0, 0, ()), now_ms=1_000)

    assert n1.tick(1_000 + SILENCE_MS) == ()
    assert [peer for peer, _ in n1.tick(1_000 + SILENCE_MS + 1)] == ["n0", "n2"]
    assert n1.term == 1  # whoever still hears the leader refuses
    n1.on_vote_response("n2", VoteResponse(1, granted=False), 8_000)
    n1.tick(1_000 + SILENCE_MS + 1 + ROUND_MS)
    assert n1.term == 1, "the dead leader may yet answer"
    n1.tick(1_000 + SILENCE_MS + 1 + ROUND_MS + 500)
    assert n1.term == 2


def test_a_round_ends_before_its_time_only_if_it_is_won_or_all_have_answered():
    def after(*voters):
        n1 = member("n1", retained=StoredState(1, "n0"))
        n1.tick(0)
        for voter in voters:
            n1.on_vote_response(voter, VoteResponse(1, granted=False), 10)
        return n1.deadline_ms

    assert (after("n2"), after("n2", "n2"), after("n2", "n0")) == (ROUND_MS, ROUND_MS, 10 + 500)


def test_who_waits_for_votes_enters_a_later_term_when_its_round_has_ended_and_is_asked_until_then():
    n0, n1 = member("n0", retained=StoredState(2, "n0")), member("n1", retained=StoredState(1, "n2"))
    n1.tick(100)
    now_ms = 2_000
    ((_, requested), _) = n0.tick(now_ms)

    busy = n1.on_vote_request(requested, now_ms)
    assert (busy.granted, busy.not_ready, n1.term) == (False, True, 1)
    assert n0.on_vote_response("n1", busy, now_ms) == ()
    assert n0.deadline_ms == now_ms + 10
    n1.tick(100 + ROUND_MS)
    assert n1.term == 2
    assert n1.on_vote_request(requested, 100 + ROUND_MS).granted


def test_a_leader_without_a_majority_gives_up_at_a_round_after_three_heartbeats():
    n0 = leader()
    rounds = [n0.tick(at_ms) and n0.role for at_ms in range(HEARTBEAT_MS, SILENCE_MS + 1, HEARTBEAT_MS)]

    assert rounds == [MemberRole.LEADER] * 3
    assert n0.tick(SILENCE_MS + HEARTBEAT_MS) == ()
    assert (n0.role, n0.leader_id) == (MemberRole.CANDIDATE, "")


def test_a_candidate_that_reaches_no_one_stays_in_its_term():
    n0 = member()
    terms = []
    for at_ms in range(0, 5 * ROUND_MS, 500):
        n0.tick(at_ms)
        terms.append(n0.term)

    assert terms == [1] * 25


def test_a_candidate_that_a_majority_refused_tries_the_next_term():
    n0 = member()
    n0.tick(0)
    n0.on_vote_response("n1", VoteResponse(1, granted=False), 10)
    n0.tick(ROUND_MS)
    n0.tick(ROUND_MS + 500)

    assert n0.term == 2


def test_a_candidate_that_hears_of_a_leader_waits_for_it():
    n0 = member(retained=StoredState(3, "n1"))
    n0.tick(0)
    n0.on_vote_response("n2", VoteResponse(3, granted=False, has_leader=True), 10)

    assert n0.tick(SILENCE_MS) == ()
    assert n0.on_push_request(PushRequest(3, "n1", 0, 0, 0, ()), SILENCE_MS).success
    assert (n0.term, n0.role) == (3, MemberRole.FOLLOWER)


def test_no_one_votes_twice_in_a_term_nor_for_a_log_that_is_behind_nor_while_there_is_a_leader():
    n1 = member("n1", retained=StoredState(1, "", (LogEntry(1, "x"),)))
    assert not n1.on_vote_request(VoteRequest(2, "n0", 0, 0), 0).granted
    assert n1.on_vote_request(VoteRequest(2, "n2", 1, 1), 0).granted
    assert not n1.on_vote_request(VoteRequest(2, "n0", 1, 1), 0).granted
    assert n1.on_vote_request(VoteRequest(2, "n2", 1, 1), 0).granted

    n1.on_push_request(PushRequest(3, "n2", 0, 0, 0, ()), 0)
    assert not n1.on_vote_request(VoteRequest(3, "n0", 9, 9), 0).granted


def test_an_entry_of_an_earlier_term_is_committed_only_with_one_of_the_own():
    n0 = member(retained=StoredState(1, "n0", (LogEntry(1, "old"),)))
    n0.tick(0)
    n0.on_vote_response("n1", VoteResponse(1, granted=False), 0)
    n0.on_vote_response("n2", VoteResponse(1, granted=False), 0)
    n0.tick(500)
    n0.on_vote_response("n1", VoteResponse(2, granted=True), 500)
    n0.on_push_response("n1", PushResponse(2, success=True, matched=1), 500)
    assert n0.committed == 0

    n0.append("")
    n0.on_push_response("n1", PushResponse(2, success=True, matched=2), 500)
    assert n0.committed == 2


def test_entries_that_contradict_the_leaders_are_cut():
    n1 = member("n1", retained=StoredState(1, "", (LogEntry(1, "a"), LogEntry(1, "lost"))))

    refused = n1.on_push_request(PushRequest(2, "n0", 2, 2, 0, ()), 0)
    assert (refused.success, refused.matched) == (False, 1)
    taken = n1.on_push_request(PushRequest(2, "n0", 1, 1, 9, (LogEntry(2, "b"),)), 0)
    assert (taken.success, taken.matched, n1.committed) == (True, 2, 2)
    assert [entry.data for entry in n1.log] == ["a", "b"]


def test_numbers_that_no_member_sends_harm_no_one():
    n0 = leader()
    n0.append("a")
    for matched in (-5, 99):
        for success in (False, True):
            n0.on_push_response("n1", PushResponse(1, success=success, matched=matched), 0)
    n0.tick(HEARTBEAT_MS)
    assert n0.committed <= len(n0.log)

    n1 = member("n1", retained=StoredState(1, "", (LogEntry(1, "a"),)))
    for start in (-1, 5):
        refused = n1.on_push_request(PushRequest(1, "n9", start, 1, 9, (LogEntry(1, "b"),)), 0)
        assert (refused.success, 0 <= refused.matched <= 1) == (False, True)
    assert [entry.data for entry in n1.log] == ["a"]


class GroupOfThree(RuleBasedStateMachine):
    """Any frame may be late or lost, and any member may restart with what it kept."""

    @initialize()
    def begin(self):
        self.now_ms = 0
        self.members = {peer: member(peer, wait_ms=300 + 100 * place) for place, peer in enumerate(PEERS)}
        self.frames = []
        self.leaders = {}
        self.agreed = []

    def sent(self, sender, outgoing):
        self.frames += [(sender, receiver, request) for receiver, request in outgoing]

    @rule(passed_ms=st.sampled_from([10, 500, HEARTBEAT_MS, SILENCE_MS + 1]), peer=st.sampled_from(PEERS))
    def tick(self, passed_ms, peer):
        self.now_ms += passed_ms
        self.sent(peer, self.members[peer].tick(self.now_ms))

    @rule(place=st.integers(0, 20), lost=st.sampled_from([False, False, False, True]), again=st.booleans())
    def deliver(self, place, lost, again):
        if not self.frames:
            return
        frame = self.frames[place % len(self.frames)]
        if not again:
            self.frames.remove(frame)
        if not lost:
            self.handle(*frame)

    @rule(
        peer=st.sampled_from(PEERS),
        reached=st.sampled_from([PEERS, PEERS[:2], PEERS[1:], ("n0", "n2")]),
        entries=st.integers(0, 3),
        steps=st.integers(0, 3),
    )
    def reign(self, peer, reached, entries, steps):
        """A member tries to lead those that it reaches, and to write; what it sends to others is lost."""
        within = {peer, *reached}
        for _ in range(4):
            self.now_ms += SILENCE_MS + 1
            self.sent(peer, self.members[peer].tick(self.now_ms))
            self.pass_on(within, 3)
        for _ in range(entries):
            self.append(peer)
        self.pass_on(within, steps)

    def pass_on(self, within, steps):
        for _ in range(steps):
            frames, self.frames = self.frames, []
            for sender, receiver, frame in frames:
                if sender in within and receiver in within:
                    self.handle(sender, receiver, frame)

    def handle(self, sender, receiver, frame):
        at = self.members[receiver]
        match frame:
            case VoteRequest():
                self.sent(receiver, [(sender, at.on_vote_request(frame, self.now_ms))])
            case VoteResponse():
                self.sent(receiver, at.on_vote_response(sender, frame, self.now_ms))
            case PushRequest():
                self.sent(receiver, [(sender, at.on_push_request(frame, self.now_ms))])
            case PushResponse():
                self.sent(receiver, at.on_push_response(sender, frame, self.now_ms))

    @rule(peer=st.sampled_from(PEERS))
    def append(self, peer):
        if self.members[peer].role is MemberRole.LEADER:
            self.sent(peer, self.members[peer].append(f"{self.now_ms}")[1])

    @rule(peer=st.sampled_from(PEERS))
    def restart(self, peer):
        self.members[peer] = member(peer, retained=self.members[peer].retained, now_ms=self.now_ms)

    @invariant()
    def a_term_has_one_leader(self):
        for peer, at in self.members.items():
            if at.role is MemberRole.LEADER:
                assert self.leaders.setdefault(at.term, peer) == peer

    @invariant()
    def what_is_committed_is_so_for_ever_and_for_all(self):
        for at in self.members.values():
            committed = list(at.log)[: at.committed]
            shared = min(len(committed), len(self.agreed))
            assert committed[:shared] == self.agreed[:shared]
            self.agreed += committed[len(self.agreed) :]


TestGroupOfThree = GroupOfThree.TestCase
TestGroupOfThree.settings = settings(max_examples=3 * DRAWN, stateful_step_count=50)
