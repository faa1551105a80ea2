"""The messages of `apache.rocketmq.v2`, made from their public definitions at run time.

They stand in a pool of their own: a program that also loads the official client has the same names in the default
pool, where they may be defined once.
"""

from enum import Enum
from functools import cache
from importlib.resources import files

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from nodes.values import frozen

_SERVICE = "apache.rocketmq.v2.MessagingService"
_DEFINITIONS = "definitions/rocketmq_v2.binpb"


class CallKind(Enum):
    """Which side of a call sends several messages."""

    UNARY = "unary"
    SERVER_STREAM = "server_stream"
    BIDIRECTIONAL = "bidirectional"


@frozen
class ServiceMethod:
    """A method of the service, with the classes of its messages."""

    path: str
    """As in the headers of a call."""
    name: str
    kind: CallKind
    request: type[Message]
    response: type[Message]


@cache
def pool() -> DescriptorPool:
    """The definitions."""
    found = DescriptorPool()
    content = (files("emulator.guests.grpc") / _DEFINITIONS).read_bytes()
    for file in FileDescriptorSet.FromString(content).file:
        found.Add(file)
    return found


@cache
def message_class(name: str) -> type[Message]:
    """The class of a message, by its name in `apache.rocketmq.v2`.

    Raises:
        KeyError: there is none.
    """
    return GetMessageClass(pool().FindMessageTypeByName(f"apache.rocketmq.v2.{name}"))


@cache
def service_methods() -> tuple[ServiceMethod, ...]:
    """All methods of `MessagingService`, in the order of their definition."""
    return tuple(map(_method, pool().FindServiceByName(_SERVICE).methods))


def _method(method: MethodDescriptor) -> ServiceMethod:
    if method.client_streaming:
        kind = CallKind.BIDIRECTIONAL
    else:
        kind = CallKind.SERVER_STREAM if method.server_streaming else CallKind.UNARY
    request, response = map(GetMessageClass, (method.input_type, method.output_type))
    return ServiceMethod(f"{_SERVICE}/{method.name}", method.name, kind, request, response)
