"""The base class of acts: their words, the nodes that they may name, and what they ask the cluster."""

import re
from collections.abc import Mapping, MutableMapping
from enum import Enum, Flag, auto
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, get_origin

import attrs

from faults.words import Wording, Words, is_whole, options
from nodes.fields import Rule, checked, key_of, span, text
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
    always: ClassVar[Words] = ()
    """Keys that are among its words, too, where they have their defaults."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """Parse an act from words, without its verb; they are those of its fields, in the order of its usage.

        A field whose key is a word of the usage follows that word; the others stand in the order of the class. Where
        the last of those is a list or a table, it takes all words that are left.

        Raises:
            WordsError: the words are not an act of this kind.
            FieldError: a parameter has an invalid value.
        """
        form = _Form.of(cls)
        left = [word for word in words if word not in form.switches]
        rest, given = options(left, (*form.named, *form.places))
        if any(key not in given for key in form.needed):
            raise cls.wording.mistake()
        values: dict[str, Any] = {ON: given.pop(ON)} if ON in given else {}
        values |= {field.name: key in words for key, field in form.switches.items()}
        values |= {form.named[key].name: _value(form.named[key], word) for key, word in given.items()}
        if len(rest) < len(form.in_order) or (form.rest is None and len(rest) > len(form.in_order)):
            raise cls.wording.mistake()
        values |= {field.name: _value(field, word) for field, word in zip(form.in_order, rest, strict=False)}
        if form.rest is not None:
            values[form.rest.name] = cls._of_rest(form.rest, rest[len(form.in_order) :])
        return cls(**values)

    @classmethod
    def _of_rest(cls, field: "attrs.Attribute[Any]", words: Words) -> Any:
        """The value of the field that takes all words that are left: a list, or a table."""
        if get_origin(field.type) is tuple:
            return tuple(words)
        return {} if not words and field.default is not attrs.NOTHING else options_of(words, cls.wording)

    @property
    def place(self) -> str | None:
        """The node or the cluster at which it is carried out; None: wherever mqadmin would."""
        place: str | None = getattr(self, ON, None)
        return place

    def words(self) -> Words:
        """Its words, from which `from_words` makes an equal act; what has its default is left out, but `always`."""
        form = _Form.of(type(self))
        fields = (*form.in_order, *(() if form.rest is None else (form.rest,)))
        found = [word for field in fields for word in _words(getattr(self, field.name))]
        found += [key for key, field in form.switches.items() if getattr(self, field.name)]
        for key, field in form.named.items():
            value = getattr(self, field.name)
            if value != field.default or key in self.always:
                found += [key, ",".join(_words(value))]
        return tuple(found)

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


@attrs.frozen
class _Form:
    """Where the words of an act stand."""

    in_order: tuple["attrs.Attribute[Any]", ...]
    """Fields of one word each, which come first."""
    rest: "attrs.Attribute[Any] | None"
    """A list or a table that takes all further words."""
    named: Mapping[str, "attrs.Attribute[Any]"]
    """Key -> field whose word follows its key."""
    switches: Mapping[str, "attrs.Attribute[Any]"]
    """Key -> field that is true where the key is among the words."""
    places: Words
    """The word before the place, if the act may name one."""
    needed: Words
    """Keys that must be among the words."""

    @classmethod
    def of(cls, kind: type[Act]) -> "_Form":
        """The form of a kind of act, from its fields and its usage."""
        usage = kind.wording.usage
        fields = [field for field in attrs.fields(kind) if field.name != ON]
        keyed = {key_of(field): field for field in fields if key_of(field) in _KEY.findall(usage)}
        switches = {key: field for key, field in keyed.items() if f"[{key}]" in usage}
        named = {key: field for key, field in keyed.items() if key not in switches}
        plain = [field for field in fields if key_of(field) not in keyed]
        rest = next((field for field in plain if get_origin(field.type) in (tuple, Mapping)), None)
        needed = [key for key, field in named.items() if field.default is attrs.NOTHING]
        places = tuple(field.name for field in attrs.fields(kind) if field.name == ON)
        return cls(
            tuple(field for field in plain if field is not rest),
            rest,
            named,
            switches,
            places,
            (*needed, *((ON,) if kind.needs_place else ())),
        )


_KEY = re.compile(r"(?<![=\w.])[a-z]\w*")


def _value(field: "attrs.Attribute[Any]", word: str) -> Any:
    """The value of a word; one that fits no value is left for the check of the field, which knows the key."""
    kind: Any = field.type
    if kind in (int, int | None):
        return int(word) if is_whole(word) else word
    if kind is bool:
        return {"true": True, "false": False}.get(word, word)
    if get_origin(kind) is tuple:
        return tuple(filter(None, word.split(",")))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next((item.value for item in kind if str(item.value).lower() == word.lower()), word)
    return word


def _words(value: Any) -> Words:
    if isinstance(value, tuple):
        return value
    if isinstance(value, Mapping):
        return tuple(f"{name}={item}" for name, item in value.items())
    if isinstance(value, Enum):
        return (str(value.value),)
    return (_text(value),)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _texts(value: Any) -> Any:
    """A table of plain values as texts, as properties files have them."""
    if not isinstance(value, Mapping):
        return value
    return {name: _text(item) for name, item in value.items()}


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


def _are_changes_of_attributes(text: object) -> bool:
    if not isinstance(text, str) or not text.isprintable():
        return False
    pairs = [entry.partition("=") for entry in text.split(",")] if text else []
    signed = all(len(key) > 1 and key[0] == ("+" if equals else "-") for key, equals, _ in pairs)
    has_values = all(value and "=" not in value for _, equals, value in pairs if equals)
    return signed and has_values and len({key[1:]: None for key, _, _ in pairs}) == len(pairs)


_ATTRIBUTES = Rule("attributes +KEY=VALUE or -KEY, separated by commas, each key once", _are_changes_of_attributes)


def attributes_field() -> Any:
    """Changes of attributes, `+message.type=FIFO,-cleanup.policy`, as in the option of mqadmin; empty: none."""
    return checked(_ATTRIBUTES, "")


def options_of(words: Words, wording: Wording) -> dict[str, str]:
    """The options in words `NAME=VALUE`.

    Raises:
        WordsError: a word is none.
    """
    pairs = [word.partition("=") for word in words]
    if not pairs or any(not name or not equals for name, equals, _ in pairs):
        raise wording.mistake()
    return {name: value for name, _, value in pairs}


def keys_of_act(kind: type[Act]) -> tuple[str, ...]:
    """The keys of an act in a file."""
    return tuple(key_of(field) for field in attrs.fields(kind) if "rule" in field.metadata)
