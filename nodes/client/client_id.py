"""What a client instance is called.

Mirrors:
    `org.apache.rocketmq.client.ClientConfig`.
"""

DEFAULT_INSTANCE_NAME = "DEFAULT"


def build_mq_client_id(
    client_ip: str, instance_name: str, unit_name: str | None = None, *, stream_request_type: bool = False
) -> str:
    """The client id: `ip@instance`, then `@unit` and `@STREAM` where they apply; members of a group sort by it."""
    unit = f"@{unit_name}" if unit_name and not unit_name.isspace() else ""
    return f"{client_ip}@{instance_name}{unit}{'@STREAM' if stream_request_type else ''}"


def change_instance_name_to_pid(instance_name: str, pid: int, nano_time: int) -> str:
    """The instance name of a clustering consumer or a producer: one of its own, unless the application gave it one.

    Args:
        nano_time: a clock that only goes forward, nanoseconds.
    """
    return f"{pid}#{nano_time}" if instance_name == DEFAULT_INSTANCE_NAME else instance_name
