"""A strategy of the user's own: what it throws and what it gives, as RocketMQ takes it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from nodes.allocation.strategy import AllocationError
from nodes.fields import quoted, shown
from nodes.protocol.model import MessageQueue
from nodes.values import frozen

_PROBLEM_MAX = 200


@frozen
class AllocateByUser:
    """Calls a function of the user's own in the place of a strategy.

    Its answer is taken as it is: RocketMQ looks neither for queues of other topics nor for queues that do not exist.
    None stands for no queue, as null does there.
    """

    name: str
    """As in the configuration."""
    function: Callable[..., Any]
    """With the signature of `AllocateMessageQueueStrategy`."""

    def __call__(
        self, consumer_group: str, current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str], /
    ) -> list[MessageQueue]:
        """The queues that the function gives to one member.

        Raises:
            AllocationError: it threw, or gave something else than queues.
        """
        try:
            given = self.function(consumer_group, current_cid, mq_all, cid_all)
            mine = [] if given is None else list(given)
        except (Exception, SystemExit) as error:  # RocketMQ catches every Throwable
            raise AllocationError(shown(f"{type(error).__name__}: {error}", _PROBLEM_MAX)) from error
        for item in mine:
            if not _is_queue(item):
                raise AllocationError(f"it gave {quoted(item)}, which is no queue of a topic, a broker and a number")
        return mine


def _is_queue(item: Any) -> bool:
    if not isinstance(item, MessageQueue):
        return False
    # The user's code is not checked by anybody: an id that is a text would fail where it is encoded.
    fields = attrs.astuple(item)
    return tuple(map(type, fields)) == (str, str, int)


def foreign_queues(mine: Iterable[MessageQueue], mq_all: Iterable[MessageQueue]) -> list[MessageQueue]:
    """The queues that were given although they were not there to be allocated."""
    known = dict.fromkeys(mq_all)
    return [queue for queue in mine if queue not in known]
