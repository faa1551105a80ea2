"""Acts on consumer groups: to create them, to switch them off, to delete them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from emulator.acts.act import Act, Concerned, Places, attributes_field, option_table, place
from emulator.acts.topics import delete_topic
from faults.words import Wording, is_whole
from nodes.fields import INT_MAX, FieldError, choice, flag, shown, text, whole
from nodes.protocol.attribute_parser import parse_to_map
from nodes.protocol.bodies import SetMessageRequestModeRequestBody
from nodes.protocol.model import MessageRequestMode, SubscriptionGroupConfig
from nodes.protocol.names import dlq_topic, retry_topic
from nodes.protocol.wire_names import wire_name
from nodes.rpc.errors import BrokerError, RemotingError

if TYPE_CHECKING:
    from nodes.tools.mq_admin_ext import MQAdminExt

_PAUSE_MS = 1_000
"""How long the command waits after a broker that failed."""
_DEFAULTS = SubscriptionGroupConfig("", consume_from_min_enable=False, consume_broadcast_enable=False)
"""What the command sets where nothing is given: two options are not as in a group that a consumer creates."""
_OPTIONS: Mapping[str, str] = {
    wire_name(SubscriptionGroupConfig, field): field.name
    for field in attrs.fields(SubscriptionGroupConfig)
    if isinstance(getattr(_DEFAULTS, field.name), bool | int)
}
"""Option of a group -> field."""


@attrs.frozen
class UpdateSubGroup(Act):
    """Creates a consumer group, or replaces all of its options: what is not given has the command's default.

    So a group that is switched off with `consumeEnable=false` also loses its own `retryMaxTimes`. At a cluster a broker
    that fails is passed over after a second.

    Mirrors:
        `org.apache.rocketmq.tools.command.consumer.UpdateSubGroupSubCommand`.
    """

    kind: ClassVar[str] = "update_sub_group"
    wording: ClassVar[Wording] = Wording(
        "update-sub-group",
        "GROUP [OPTION=VALUE...] [attributes TEXT] [on BROKER|CLUSTER]",
        "create a consumer group, or replace its options; consumeEnable=false switches it off",
    )
    group: str = text()
    """Its name."""
    options: Mapping[str, str] = option_table(may_be_empty=True)
    """Options of RocketMQ's `SubscriptionGroupConfig`, such as `consumeEnable` and `retryMaxTimes`."""
    attributes: str = attributes_field()
    """Changes of its attributes; 5.3.3 knows none, and its brokers refuse every key."""
    on: str | None = place()
    """A broker, or a cluster; none: the only cluster."""

    def __attrs_post_init__(self) -> None:
        for name, value in self.options.items():
            _parsed(name, value)

    def concerns(self) -> Concerned:
        """It may create its group."""
        return Concerned(new_group=self.group)

    def config(self) -> SubscriptionGroupConfig:
        """The configuration that replaces what the brokers have."""
        given = {_OPTIONS[name]: _parsed(name, value) for name, value in self.options.items()}
        return attrs.evolve(_DEFAULTS, group_name=self.group, attributes=parse_to_map(self.attributes), **given)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the masters, one after the other; those of a cluster all, also if one fails."""
        config = self.config()
        await _at_each(admin, places, self.on, lambda address: admin.create_and_update_group_config(address, config))


async def _at_each(
    admin: "MQAdminExt", places: Places, on: str | None, change: Callable[[str], Awaitable[None]]
) -> None:
    """A change at one broker; or at all masters of a cluster, after a pause behind one that fails.

    Raises:
        RemotingError: the last failure, when all have been asked.
        BrokerError: as before.
    """
    failure: RemotingError | BrokerError | None = None
    for address in await places.brokers_of(admin, on):
        try:
            await change(address)
        except (RemotingError, BrokerError) as error:
            failure = error
            if on not in places.brokers:
                await admin.host.sleep_ms(_PAUSE_MS)
    if failure is not None:
        raise failure


def different_options(values: Mapping[str, bool | int]) -> dict[str, str]:
    """Those of the options of a group that differ from the command's defaults.

    Raises:
        FieldError: there is no such option.
    """
    texts = {name: str(value).lower() for name, value in values.items()}
    return {name: text for name, text in texts.items() if _parsed(name, text) != getattr(_DEFAULTS, _OPTIONS[name])}


def _parsed(name: str, value: str) -> Any:
    """The value of an option of a group.

    Raises:
        FieldError: there is no such option, or it may not have this value.
    """
    if name not in _OPTIONS:
        raise FieldError("options", f"expected options of a group, {', '.join(_OPTIONS)}, not {shown(name)}")
    if isinstance(getattr(_DEFAULTS, _OPTIONS[name]), bool):
        if value not in ("true", "false"):
            raise FieldError("options", f"expected {name} of true or false, not {shown(value)}")
        return value == "true"
    if not is_whole(value) or abs(int(value)) > INT_MAX:
        raise FieldError("options", f"expected a whole number for {name}, not {shown(value)}")
    return int(value)


@attrs.frozen
class DeleteSubGroup(Act):
    """Deletes a consumer group at the masters, and at a cluster its retry topic and its dead letter topic everywhere.

    A member that lives goes on, and creates the group again with its next pull where brokers may
    (`autoCreateSubscriptionGroup`).

    Mirrors:
        `org.apache.rocketmq.tools.command.consumer.DeleteSubscriptionGroupCommand`.
    """

    kind: ClassVar[str] = "delete_sub_group"
    wording: ClassVar[Wording] = Wording(
        "delete-sub-group",
        "GROUP [removeOffset true|false] [on BROKER|CLUSTER]",
        "delete a consumer group, and its retry and dead letter topics",
    )
    group: str = text()
    """Its name."""
    remove_offset: bool = flag(default=False, key="removeOffset")
    """Whether its offsets are deleted, too."""
    on: str | None = place()
    """A broker, where the topics stay, or a cluster; none: the only cluster."""

    def concerns(self) -> Concerned:
        """Its group exists."""
        return Concerned(group=self.group)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the masters up to the first that fails; then delete the two topics, as far as that goes."""
        for address in await places.brokers_of(admin, self.on):
            await admin.delete_group(address, self.group, clean_offset=self.remove_offset)
        if self.on not in places.brokers:
            for topic in (retry_topic(self.group), dlq_topic(self.group)):
                await delete_topic(admin, places.cluster(self.on), topic, slaves=True)


@attrs.frozen
class SetMessageRequestMode(Act):
    """Sets whether a group pulls or pops a topic, at each master; a broker of a cluster that fails is passed over.

    Mirrors:
        `org.apache.rocketmq.tools.command.consumer.SetConsumeModeSubCommand`.
    """

    kind: ClassVar[str] = "set_consume_mode"
    wording: ClassVar[Wording] = Wording(
        "set-consume-mode",
        "GROUP TOPIC PULL|POP [share N] [on BROKER|CLUSTER]",
        "set at brokers whether a group pulls or pops a topic, until it is set again",
        3,
    )
    group: str = text()
    """The consumer group."""
    topic: str = text()
    """The topic."""
    mode: MessageRequestMode = choice(MessageRequestMode)
    """How its members get their messages from then on."""
    share: int = whole(0, unit="members", minimum=-1)
    """Of how many following members each pops the queues, too; 0 or -1: every member pops all queues."""
    on: str | None = place()
    """A broker, or a cluster; none: the only cluster."""

    def concerns(self) -> Concerned:
        """Its topic and its group exist."""
        return Concerned(topic=self.topic, group=self.group)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the masters, one after the other, all of them."""
        mode = SetMessageRequestModeRequestBody(self.topic, self.group, self.mode, self.share)
        await _at_each(admin, places, self.on, lambda address: admin.set_message_request_mode(address, mode))
