"""Namespaces: a text before a `%` in the name of a topic or group, after the prefix of retry and dead letters.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.NamespaceUtil`.
"""

import re

from nodes.protocol.model import DLQ_TOPIC_PREFIX, RETRY_TOPIC_PREFIX
from nodes.protocol.names import is_sys_consumer_group, is_system_topic

_SEPARATOR = "%"
_ENDPOINT = "http://"
_INSTANCE_ENDPOINT = re.compile(r"(\w+://|)MQ_INST_\w+_\w+\..*")


def without_retry_and_dlq(resource: str) -> str:
    """A name without the prefix of retry or of dead letters."""
    return resource.removeprefix(_prefix(resource))


def namespace_of(resource: str) -> str:
    """The namespace in a name; empty if there is none, and for RocketMQ's own names.

    Mirrors:
        `NamespaceUtil#getNamespaceFromResource`.
    """
    if _is_system_resource(resource):
        return ""
    namespace, separator, _ = without_retry_and_dlq(resource).partition(_SEPARATOR)
    return namespace if separator else ""


def without_namespace(resource: str, namespace: str | None = None) -> str:
    """A name without its namespace.

    Args:
        namespace: remove only this one; None: any; empty: none.
    """
    if namespace is not None and not is_with_namespace(resource, namespace, even_system=True):
        return resource
    found = namespace_of(resource)
    if not found:
        return resource
    return _prefix(resource) + without_retry_and_dlq(resource)[len(found) + 1 :]


def is_with_namespace(resource: str, namespace: str | None, *, even_system: bool = False) -> bool:
    """Whether a name has this namespace.

    Args:
        even_system: also check RocketMQ's own names.

    Mirrors:
        `NamespaceUtil#isAlreadyWithNamespace`.
    """
    if not resource or not namespace or (_is_system_resource(resource) and not even_system):
        return False
    return without_retry_and_dlq(resource).startswith(namespace + _SEPARATOR)


def wrap_namespace(namespace: str | None, resource: str) -> str:
    """A name with this namespace; RocketMQ's own names stay as they are."""
    if not namespace or not resource or _is_system_resource(resource) or is_with_namespace(resource, namespace):
        return resource
    return f"{_prefix(resource)}{namespace}{_SEPARATOR}{without_retry_and_dlq(resource)}"


def instance_of(namesrv_addr: str) -> str | None:
    """The namespace in an address such as `http://MQ_INST_1_shop.DOMAIN:PORT`; None for any other.

    Mirrors:
        `org.apache.rocketmq.common.utils.NameServerAddressUtils#parseInstanceIdFromEndpoint`.
    """
    if _INSTANCE_ENDPOINT.fullmatch(namesrv_addr) is None:
        return None
    return namesrv_addr[namesrv_addr.rfind("/") + 1 : namesrv_addr.index(".")]


def address_of_endpoint(namesrv_addr: str) -> str:
    """What clients connect to: of an address that begins with `http://` the part after the last slash.

    Mirrors:
        `org.apache.rocketmq.client.ClientConfig#getNamesrvAddr`.
    """
    return namesrv_addr.rpartition("/")[2] if namesrv_addr.strip().startswith(_ENDPOINT) else namesrv_addr


def _prefix(resource: str) -> str:
    prefixes = (RETRY_TOPIC_PREFIX, DLQ_TOPIC_PREFIX)
    return next((prefix for prefix in prefixes if resource.startswith(prefix)), "")


def _is_system_resource(resource: str) -> bool:
    return is_system_topic(resource) or is_sys_consumer_group(resource)
