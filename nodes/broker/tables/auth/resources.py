"""What requests concern and policies are about: topics, groups, clusters.

Mirrors:
    `org.apache.rocketmq.auth.authorization.model.Resource`.
"""

from typing import Self

from nodes.protocol.auth import ResourcePattern, ResourceType, by_name
from nodes.protocol.model import RETRY_TOPIC_PREFIX
from nodes.values import frozen

_ANY_NAME = "*"


@frozen
class Resource:
    """One resource of a request, or those that an entry of a policy is about."""

    type: ResourceType
    name: str | None
    pattern: ResourcePattern = ResourcePattern.LITERAL

    @classmethod
    def of(cls, key: str | None) -> Self | None:
        """Read a key such as `Topic:orders`, `Group:bill*`, `Cluster:*` or `*`; None: it is none.

        A star in the middle of a name is part of it, unless another one ends the name: then the first one does.
        """
        if key is None or not key.strip():
            return None
        if key == _ANY_NAME:
            return cls(ResourceType.ANY, None, ResourcePattern.ANY)
        kind, _, name = key.partition(":")
        resource_type = by_name(ResourceType, kind)
        if resource_type is None:
            return None
        if name == _ANY_NAME:
            return cls(resource_type, None, ResourcePattern.ANY)
        if name.endswith(_ANY_NAME):
            return cls(resource_type, name.partition(_ANY_NAME)[0], ResourcePattern.PREFIXED)
        return cls(resource_type, name)

    @classmethod
    def of_topic(cls, name: str | None) -> Self:
        """A topic."""
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def of_group(cls, name: str | None) -> Self:
        """A consumer group, which may be named by its retry topic."""
        return cls(ResourceType.GROUP, None if name is None else name.removeprefix(RETRY_TOPIC_PREFIX))

    @property
    def key(self) -> str:
        """The key that stands for it; RocketMQ prints a name that is missing as `null`."""
        if self.type is ResourceType.ANY:
            return _ANY_NAME
        if self.pattern is ResourcePattern.ANY:
            return f"{self.type}:{_ANY_NAME}"
        name = "null" if self.name is None else self.name
        return f"{self.type}:{name}{_ANY_NAME if self.pattern is ResourcePattern.PREFIXED else ''}"

    def matches(self, requested: "Resource") -> bool:
        """Whether an entry about this resource is about a requested one."""
        if self.type is ResourceType.ANY:
            return True
        if self.type is not requested.type:
            return False
        if self.pattern is ResourcePattern.ANY:
            return True
        if self.pattern is ResourcePattern.LITERAL:
            return self.name == requested.name
        return requested.name is not None and self.name is not None and requested.name.startswith(self.name)
