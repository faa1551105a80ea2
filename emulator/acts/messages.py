"""Acts on messages: to send one."""

from typing import TYPE_CHECKING, ClassVar

import attrs

from emulator.acts.act import Act, Concerned, PlaceKind, Places, place
from faults.words import Wording
from nodes.fields import INT_MAX, FieldError, text, whole
from nodes.protocol.model import MessageQueue
from nodes.protocol.properties import KEYS, TAGS

if TYPE_CHECKING:
    from nodes.tools.mq_admin_ext import MQAdminExt


@attrs.frozen
class SendOneMessage(Act):
    """Sends one message, with the retries of any producer; to a queue that is named there is one attempt.

    Mirrors:
        `org.apache.rocketmq.tools.command.message.SendMessageCommand`.
    """

    kind: ClassVar[str] = "send_message"
    wording: ClassVar[Wording] = Wording(
        "send-message", "TOPIC BODY [tags T] [keys K] [queue N on BROKER]", "send one message", 2
    )
    place_kind: ClassVar[PlaceKind] = PlaceKind.BROKER
    topic: str = text()
    """Its topic."""
    body: str = text()
    """Its text."""
    tags: str | None = text(None)
    """Its tag."""
    keys: str | None = text(None)
    """Its keys."""
    queue: int | None = whole(None, minimum=0, limit=INT_MAX)
    """Id of the queue, at the broker that `on` names; none: the queue whose turn it is."""
    on: str | None = place()
    """The broker of the queue."""

    def __attrs_post_init__(self) -> None:
        if (self.queue is None) != (self.on is None):
            lacks, there = ("on", "queue") if self.on is None else ("queue", "on")
            raise FieldError(lacks, f"expected {lacks} with {there}: a queue has a number and a broker")

    def concerns(self) -> Concerned:
        """Its topic exists, or a broker creates it."""
        return Concerned(topic=self.topic)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Be a producer for one message."""
        queue = None if self.queue is None else MessageQueue(self.topic, places.broker_names[self.on or ""], self.queue)
        properties = {name: value for name, value in ((TAGS, self.tags), (KEYS, self.keys)) if value is not None}
        await admin.send_message(self.topic, self.body.encode(), properties, queue)
