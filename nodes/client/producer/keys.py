"""Keys of an emulated application: what each message is about, for instance an order; topics that keys choose."""

from bisect import bisect_right
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate, cycle

from nodes.client.tables.queue_selectors import KeyHash, select_by_hash
from nodes.fields import FieldError, Rule, checked, choice, text, whole
from nodes.host import RandomStream
from nodes.values import frozen

KEYS_MAX = 100_000
PARTITIONS_MAX = 1_000
_EXPONENT_MAX = 10
_WEIGHT = 10**12
"""Weight of the first key. Weights are whole numbers, so that draws do not depend on how a machine rounds."""
_PERCENT = 100
_EXPONENT = Rule(
    f"a number above 0 and at most {_EXPONENT_MAX}",
    lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _EXPONENT_MAX,
)


class KeyDistribution(StrEnum):
    """How likely each key is."""

    UNIFORM = "uniform"
    """All are equally likely."""
    ZIPF = "zipf"
    """The n-th is as likely as `1 / n ** exponent`."""
    HOT = "hot"
    """The first has `hot_percent` of the messages; the others share the rest."""
    IN_TURN = "in_turn"
    """One after the other: with no more messages than keys, each message has its own."""


@frozen
class MessageKeys:
    """The keys `1`, `2`, ... `count`; each message has one of them. Producers with equal keys write about the same."""

    count: int = whole(100, minimum=1, limit=KEYS_MAX)
    """How many keys there are."""
    distribution: KeyDistribution = KeyDistribution.UNIFORM
    """How likely each key is."""
    exponent: float = checked(_EXPONENT, 1.0)
    """zipf: the higher, the more the first keys have."""
    hot_percent: int = whole(50, unit="percent", minimum=0, maximum=_PERCENT)
    """hot: share of the messages that the first key has."""

    def __attrs_post_init__(self) -> None:
        if self.exponent != 1.0 and self.distribution is not KeyDistribution.ZIPF:
            raise FieldError("exponent", f'expected distribution = "{KeyDistribution.ZIPF}" with it')
        if self.hot_percent != 50 and self.distribution is not KeyDistribution.HOT:
            raise FieldError("hot_percent", f'expected distribution = "{KeyDistribution.HOT}" with it')


class KeyDraws:
    """Draws the key of each message.

    Args:
        chance: one draw per message, unless keys take turns.
    """

    def __init__(self, keys: MessageKeys, chance: RandomStream) -> None:
        self._in_turn = cycle(range(keys.count)) if keys.distribution is KeyDistribution.IN_TURN else None
        self._bounds = _bounds(keys)
        self._randrange = chance.randrange

    def draw(self) -> str:
        """The key of the next message."""
        if self._in_turn is not None:
            return str(next(self._in_turn) + 1)
        return str(bisect_right(self._bounds, self._randrange(self._bounds[-1])) + 1)


@lru_cache(maxsize=16)
def _bounds(keys: MessageKeys) -> tuple[int, ...]:
    """Sums of the weights up to each key, which all producers with these keys share."""
    others = keys.count - 1
    match keys.distribution:
        case KeyDistribution.UNIFORM | KeyDistribution.IN_TURN:
            weights = [1] * keys.count
        case KeyDistribution.ZIPF:
            weights = [round(_WEIGHT / number**keys.exponent) for number in range(1, keys.count + 1)]
        case KeyDistribution.HOT:
            weights = [keys.hot_percent * others, *[_PERCENT - keys.hot_percent] * others] if others else [1]
    return tuple(accumulate(weights))


@frozen
class TopicPartitions:
    """The topics `OrderEvents-P0`, `OrderEvents-P1`, ... of an application; all messages of a key go to one of them.

    RocketMQ knows nothing of this: the application takes the remainder of a hash by their number, and makes the name
    of a topic of it. With another number of partitions most keys have another topic.
    """

    prefix: str = text()
    """What the names of the topics begin with, before their number, from 0: `OrderEvents-P`."""
    count: int = whole(minimum=1, limit=PARTITIONS_MAX)
    """How many there are."""
    by: KeyHash = choice(KeyHash, KeyHash.HASH)
    """The hash of a key, whose remainder by their number decides. hash: Java's `hashCode` without its sign; md5: the
    first 32 bits of the MD5, as .NET reads them."""

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics, in order."""
        return tuple(f"{self.prefix}{number}" for number in range(self.count))

    def topic_of(self, key: str) -> str:
        """The topic for messages with a key."""
        return f"{self.prefix}{select_by_hash(range(self.count), self.by.of(key))}"
