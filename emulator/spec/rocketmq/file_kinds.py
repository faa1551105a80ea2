"""Configuration files that RocketMQ and its containers read, by kind and suffix; commands know files by these."""

from enum import StrEnum

YAML_SUFFIXES = (".yaml", ".yml")
JSON_SUFFIXES = (".json",)
CONFIGURATION_SUFFIXES = (".conf", ".properties", *YAML_SUFFIXES, *JSON_SUFFIXES)
"""Of files that can be imported; a scenario has none of them."""


class FileKind(StrEnum):
    """What a configuration file is for."""

    BROKER = "broker"
    NAMESRV = "namesrv"
    CONTROLLER = "controller"
    CONTAINER = "container"
    PROXY = "proxy"
    CLIENT = "client"
