"""The protocol of RocketMQ 5 clients, `apache.rocketmq.v2` 2.0.4, as values.

Classes and fields have the names of the public definitions, in snake case. A duration or an instant is a number of
milliseconds, and its field ends in `_ms`. A message that may be absent is None if a node looks at its absence; else an
absent one equals an empty one, as its Java getter returns.
"""
