"""The identity of a broker in controller mode: two small files that say which replica it is.

The first is written before a broker applies for an id, the second when it has got it; then the first is deleted. A `#`
in a name breaks both.

Mirrors:
    `org.apache.rocketmq.store.ha.autoswitch.BrokerMetadata`, `TempBrokerMetadata`.
"""

from nodes.protocol.java import java_split
from nodes.protocol.widths import int64_of
from nodes.values import frozen

_SEPARATOR = "#"


class DamagedIdentityError(ValueError):
    """An identity file cannot be read; the broker cannot start."""


@frozen
class BrokerMetadata:
    """The id that a broker has for ever."""

    cluster_name: str
    broker_name: str
    broker_id: int

    @property
    def text(self) -> str:
        """Of the file."""
        return _SEPARATOR.join((self.cluster_name, self.broker_name, str(self.broker_id)))

    @property
    def is_loaded(self) -> bool:
        """Whether it names a broker."""
        return bool(self.cluster_name and self.broker_name)


@frozen
class TempBrokerMetadata(BrokerMetadata):
    """The id that a broker applies for, and the check code by which it is known to be the same."""

    register_check_code: str

    @property
    def text(self) -> str:
        """Of the file."""
        return _SEPARATOR.join((super().text, self.register_check_code))

    @property
    def is_loaded(self) -> bool:
        """Whether it names a broker and a check code."""
        return super().is_loaded and bool(self.register_check_code)


def read_broker_metadata(text: str) -> BrokerMetadata:
    """Read the file of an id.

    Raises:
        DamagedIdentityError: as below.
    """
    return BrokerMetadata(*_identity(java_split(text, _SEPARATOR)))


def read_temp_broker_metadata(text: str) -> TempBrokerMetadata:
    """Read the file of an application.

    Raises:
        DamagedIdentityError: a part is missing, or the third is no number.
    """
    fields = java_split(text, _SEPARATOR)
    return TempBrokerMetadata(*_identity(fields), _field(fields, 3))


def _identity(fields: list[str]) -> tuple[str, str, int]:
    cluster_name, broker_name, broker_id = _field(fields, 0), _field(fields, 1), _field(fields, 2)
    try:
        return cluster_name, broker_name, int64_of(broker_id)
    except ValueError:
        raise DamagedIdentityError(f'For input string: "{broker_id}"') from None


def _field(fields: list[str], place: int) -> str:
    if place >= len(fields):
        raise DamagedIdentityError(f"Index {place} out of bounds for length {len(fields)}")
    return fields[place]
