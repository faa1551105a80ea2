"""The base class of acts: their words, the nodes that they may name, and what they ask the cluster."""

from collections.abc import Mapping, MutableMapping
from enum import Flag, auto
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import attrs

from faults.words import Wording, Words, WordsError, options
from nodes.fields import Rule, checked, key_of, shown, span, text
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.headers_container import RemoveBrokerRequestHeader
from nodes.protocol.model import NO_TEXTS
from nodes.secret import SECRET_OPTIONS, Secret

if TYPE_CHECKING:
    from nodes.tools.mq_admin_ext import MQAdminExt

ON = "on"
"""The word before the node at which an act is carried out."""


class PlaceKind(Flag):
    """What an act may name as its place."""

    BROKER = auto()
    """One broker, which is asked directly, as with the option `-b` of mqadmin."""
    CLUSTER = auto()
    """A cluster of brokers, whose addresses a nameserver gives, as with the option `-c`."""
    NAMESERVER = auto()
    CONTROLLER = auto()


BROKERS = PlaceKind.BROKER | PlaceKind.CLUSTER


class Machines(Protocol):
    """The machines of a cluster, for acts that start processes and shut them down."""

    @property
    def absent(self) -> Mapping[str, None]:
        """Nodes without a process that an administrator has not started, or has shut down."""

    async def start_node(self, name: str) -> None:
        """Start the process of a node that is absent.

        Raises:
            AdminToolError: it is not.
        """

    async def shutdown_node(self, name: str) -> None:
        """Shut the process of a node down, which is absent from then on; returns when it has ended.

        Raises:
            AdminToolError: it is absent already.
        """


@attrs.frozen
class ContainedBroker:
    """A broker that is a part of the process of a container."""

    container: str
    """Address of the container."""
    path: str
    """Its file on the machine of the container."""
    removal: RemoveBrokerRequestHeader
    """The request that has the container remove it."""


@attrs.frozen
class Places:
    """What an administrator knows of a cluster: names and addresses, in the order of the scenario."""

    brokers: Mapping[str, str]
    """Node -> address."""
    nameservers: Mapping[str, str]
    controllers: Mapping[str, str]
    clusters: tuple[str, ...]
    broker_names: Mapping[str, str]
    """Node -> its brokerName."""
    address_server: str
    """Its address; empty: there is none."""
    statefulsets: Mapping[str, str] = attrs.field(factory=dict)
    """StatefulSet -> address of its API server."""
    contained: Mapping[str, ContainedBroker] = attrs.field(factory=dict)
    """Node -> the broker of a container."""
    machines: Machines | None = attrs.field(default=None, eq=False)
    """None: only names are needed."""
    domains: MutableMapping[str, tuple[str, ...]] = attrs.field(factory=dict, eq=False)
    """Domain name -> IP addresses: the name service of the run, which an act may change."""
    secrets: Mapping[str, Secret] = attrs.field(factory=dict, repr=False)
    """Access key of an account -> its secret."""
    credentials: SessionCredentials | None = None
    """With which requests are signed; None: they are not."""

    def of(self, kind: PlaceKind) -> tuple[str, ...]:
        """The names of all places of these kinds."""
        named = (
            (PlaceKind.BROKER, self.brokers),
            (PlaceKind.CLUSTER, self.clusters),
            (PlaceKind.NAMESERVER, self.nameservers),
            (PlaceKind.CONTROLLER, self.controllers),
        )
        return tuple(dict.fromkeys(name for part, names in named if part in kind for name in names))

    def cluster(self, place: str | None) -> str:
        """The cluster that an act concerns: the one that it names, else the only one."""
        return self.clusters[0] if place is None or place not in self.clusters else place

    def nameservers_of(self, place: str | None) -> tuple[str, ...]:
        """The addresses of the nameserver that an act names, else of all that an administrator has not shut down."""
        absent = {} if self.machines is None else self.machines.absent
        names = [name for name in self.nameservers if name not in absent] if place is None else [place]
        return tuple(self.nameservers[name] for name in names)

    async def brokers_of(self, admin: "MQAdminExt", place: str | None, *, slaves: bool = False) -> tuple[str, ...]:
        """The addresses that an act asks: of the broker that it names, else of the masters of its cluster.

        Raises:
            AdminToolError: the nameserver knows no such cluster.
            RemotingError: it does not answer.
        """
        if place is not None and place in self.brokers:
            return (self.brokers[place],)
        return await admin.broker_addresses(self.cluster(place), slaves=slaves)


@attrs.frozen
class Concerned:
    """What an act needs or makes, for checks: names that are not empty."""

    topic: str = ""
    """A topic that must be known."""
    group: str = ""
    """A consumer group that must be known."""
    new_topic: str = ""
    """A topic that it may create."""
    new_group: str = ""
    """A group that it may create, or give offsets."""
    broker: str = ""
    """A brokerName."""
    process: str = ""
    """A nameserver, a broker or a container with a process of its own."""
    contained: str = ""
    """A broker of a container."""
    domain: str = ""
    """A domain name."""
    nodes: tuple[str, ...] = ()
    """Nameservers by name."""
    nameservers: tuple[str, ...] = ()
    """Nameservers by name, or `HOST:PORT`."""
    broker_names: tuple[str, ...] = ()
    """Each a brokerName."""
    statefulset: str = ""
    """A StatefulSet."""
    address_server: bool = False
    """Whether there must be an address server."""
    account: str = ""
    """Access key of an account."""
    source: str = ""
    """A broker by its node, from which something is copied."""


@attrs.frozen
class Act:
    """An act of an administrator as a frozen value; each command of mqadmin that it stands for is a subclass.

    A new act is a subclass, and a line in `emulator.acts.catalogue`, which makes it a verb of the console, a method of
    notebooks, and a kind of `[[admin]]`.
    """

    kind: ClassVar[str]
    """Name in scenario files: `update_topic`."""
    wording: ClassVar[Wording]
    """Form as a verb: `update-topic TOPIC ...`; the verb is the command of mqadmin."""
    place_kind: ClassVar[PlaceKind] = BROKERS
    """What it may name as its place."""
    needs_place: ClassVar[bool] = False
    """Whether it has to name one."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """Parse an act from words, without its verb.

        Raises:
            WordsError: the words are not an act of this kind.
            FieldError: a parameter has an invalid value.
        """
        raise NotImplementedError

    @property
    def place(self) -> str | None:
        """The node or the cluster at which it is carried out; None: wherever mqadmin would."""
        place: str | None = getattr(self, ON, None)
        return place

    def words(self) -> Words:
        """Its words, from which `from_words` makes an equal act."""
        raise NotImplementedError

    def line(self) -> str:
        """Verb and words: `update-topic orders queues 8 on broker-a`."""
        at = () if self.place is None else (ON, self.place)
        return " ".join(quote(word) for word in (self.wording.verb, *self.words(), *at))

    def concerns(self) -> Concerned:
        """The names that it needs and makes."""
        return Concerned()

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Do what the command of mqadmin does.

        Raises:
            RemotingError: a node does not answer; what was done before stays.
            BrokerError: a node refuses.
            AdminToolError: mqadmin gives up by itself.
        """
        raise NotImplementedError


@attrs.frozen
class TimedAct:
    """An act with an id and an instant."""

    id: str
    """Unique in its scenario; names the act in the trace."""
    act: Act
    at_ms: int = span()
    """When the administrator begins it, since the run began."""

    def describe(self) -> str:
        """For people: `30000 ms: update-topic orders queues 8`."""
        return f"{self.at_ms} ms: {self.act.line()}"


def place() -> Any:
    """The field `on` of an act."""
    return text(None)


def placed(words: Words, names: Words = ()) -> tuple[list[str], dict[str, str], str | None]:
    """(other words, mapping name -> value of the named ones, the place).

    Raises:
        WordsError: a name has no value.
    """
    rest, given = options(words, (*names, ON))
    return rest, given, given.pop(ON, None)


def named(values: Mapping[str, Any]) -> tuple[str, ...]:
    """`name value` for each value that is not None."""
    return tuple(word for name, value in values.items() if value is not None for word in (name, str(value)))


def _texts(value: Any) -> Any:
    """A table of plain values as texts, as properties files have them."""
    if not isinstance(value, Mapping):
        return value
    return {name: str(item).lower() if isinstance(item, bool) else str(item) for name, item in value.items()}


def _are_options(value: object, *, may_be_empty: bool) -> bool:
    if not isinstance(value, Mapping) or not (value or may_be_empty):
        return False
    names_fit = all(isinstance(name, str) and name.isidentifier() and name not in SECRET_OPTIONS for name in value)
    return names_fit and all(isinstance(item, str | int) and str(item).isprintable() for item in value.values())


def option_table(*, may_be_empty: bool = False) -> Any:
    """Options that an act sets, none of which is a secret; as texts.

    Args:
        may_be_empty: whether there need not be any.
    """
    rule = Rule("a table of options that are no secrets", lambda value: _are_options(value, may_be_empty=may_be_empty))
    return checked(rule, NO_TEXTS if may_be_empty else attrs.NOTHING, converter=_texts)


def options_of(words: Words, wording: Wording) -> dict[str, str]:
    """The options in words `NAME=VALUE`.

    Raises:
        WordsError: a word is none.
    """
    pairs = [word.partition("=") for word in words]
    if not pairs or any(not name or not equals for name, equals, _ in pairs):
        raise wording.mistake()
    return {name: value for name, _, value in pairs}


def flag_of(name: str, word: str | None, *, default: bool) -> bool:
    """A switch in words.

    Raises:
        WordsError: the word is neither true nor false.
    """
    if word not in (None, "true", "false"):
        raise WordsError(f"{name}: expected true or false, not {shown(str(word))}")
    return default if word is None else word == "true"


def keys_of_act(kind: type[Act]) -> tuple[str, ...]:
    """The keys of an act in a file."""
    return tuple(key_of(field) for field in attrs.fields(kind) if "rule" in field.metadata)
