"""What one can wait for: agreement, a state of a node, an owner of a queue.

agree                   nodes of one role agree about everything they share
agree SUBJECT           they agree about this
differ [SUBJECT]        two of them do not
NODE STATE              starting, ready, suspended, down or "powered off"
TOPIC/BROKER/QUEUE WHO  a node, nobody, somebody (exactly one), or several
"""

from collections.abc import Callable

from emulator.host import PowerState
from emulator.verbs.desk import Desk
from emulator.verbs.looking import shared_subjects
from emulator.verbs.verb import VerbError, Words, nearest
from faults.link import Stage

Condition = Callable[[], bool]
_READY = "ready"
_STATES = (_READY, Stage.STARTING.value, *(it.value for it in PowerState if it is not PowerState.RUNNING))
_OWNED = {"nobody": 0, "somebody": 1}
_SEVERAL = "several"


def condition(desk: Desk, words: Words) -> Condition:
    """What words say.

    Raises:
        VerbError: they say nothing that one could wait for.
    """
    head, rest = words[0], " ".join(words[1:])
    if head in ("agree", "differ"):
        return _agreement(desk, rest or None, wanted=head == "agree")
    if head.count("/") == 2:
        return _ownership(desk, head, rest)
    host = desk.host(head)
    if rest not in _STATES:
        raise VerbError(nearest("state", rest, _STATES))
    if rest in (_READY, Stage.STARTING.value):
        is_ready = rest == _READY
        return lambda: (
            host.power_state is PowerState.RUNNING
            and host.process is not None
            and host.process.is_in(Stage.STARTING) != is_ready
        )
    return lambda: host.power_state.value == rest


def _agreement(desk: Desk, subject: str | None, *, wanted: bool) -> Condition:
    def holds() -> bool:
        keys = [key for key in shared_subjects(desk) if subject in (None, key[1])]
        # Who has not started yet neither agrees nor differs.
        has_begun = bool(keys) and (not wanted or desk.cluster.started.is_set())
        return has_begun and wanted != any(desk.book.differs(*key) for key in keys)

    return holds


def _ownership(desk: Desk, queue: str, who: str) -> Condition:
    owners = desk.operator.owners
    if not who:
        raise VerbError("expected a node, nobody, somebody or several after the queue")
    if who in _OWNED:
        return lambda: len(owners.of(queue)) == _OWNED[who]
    if who == _SEVERAL:
        return lambda: len(owners.of(queue)) > 1
    name = desk.node(who)
    return lambda: owners.of(queue) == (name,)
