"""Clients with a namespace: they use full names of groups and topics, which the rest of a scenario names, too."""

from typing import TypeVar

import attrs

from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.scenario import ConsumerGroupSpec
from nodes.config import ClientConfig
from nodes.protocol.namespaces import address_of_endpoint, instance_of, wrap_namespace

_AnyClient = TypeVar("_AnyClient", bound=ClientConfig)


def consumers_in_namespace(spec: ConsumerGroupSpec) -> ConsumerGroupSpec:
    """Consumers under the full names of their group and topics."""
    config = _resolved(spec.config)
    if config.namespace is None:
        return spec
    return attrs.evolve(
        spec,
        config=config,
        group=wrap_namespace(config.namespace, spec.group),
        topics=tuple(wrap_namespace(config.namespace, topic) for topic in spec.topics),
        expressions={wrap_namespace(config.namespace, topic): text for topic, text in spec.expressions.items()},
    )


def producer_in_namespace(spec: ProducerSpec) -> ProducerSpec:
    """A producer under the full names of its group and topic."""
    config = _resolved(spec.config)
    if config.namespace is None:
        return spec
    partitions, group = spec.partitions, wrap_namespace(config.namespace, spec.group)
    if partitions is not None:
        partitions = attrs.evolve(partitions, prefix=wrap_namespace(config.namespace, partitions.prefix))
    topic = None if spec.topic is None else wrap_namespace(config.namespace, spec.topic)
    return attrs.evolve(spec, config=config, group=group, topic=topic, partitions=partitions)


def _resolved(config: _AnyClient) -> _AnyClient:
    """Options with the address and the namespace of an endpoint, if `namesrvAddr` is one."""
    address = address_of_endpoint(config.namesrv_addr)
    namespace = config.namespace or instance_of(config.namesrv_addr)
    if (address, namespace) == (config.namesrv_addr, config.namespace):
        return config
    return attrs.evolve(config, namesrv_addr=address, namespace=namespace)
