"""Addresses and ranges of addresses in policies.

Mirrors:
    `org.apache.rocketmq.common.utils.IPAddressUtils`. It reads the address before a `/` with `InetAddress#getByName`,
    which is more lenient than the check of an address alone; names of hosts, which it would look up, are no addresses
    here.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address

_PLAIN_IPV4 = re.compile(r"(?:0|[1-9]\d{0,2})(?:\.(?:0|[1-9]\d{0,2})){3}")
_PARTS_MAX = 4
_BITS = 8
_LOOPBACK = IPv4Address("127.0.0.1")
_INTEGER = re.compile(r"[+-]?\d+")


def is_valid_ip_or_cidr(text: str) -> bool:
    """Whether a policy may have a text as a source address."""
    return _is_valid_ip(text) or _is_valid_cidr(text)


def is_in_range(ip: str, own: str) -> bool:
    """Whether an address is one, or in the range, that an entry of a policy has.

    Raises:
        ValueError: the range cannot be read.
    """
    parts = _split(own)
    if len(parts) != 2:
        return len(parts) == 1 and ip == own
    network, prefix = _address(parts[0]), _integer(parts[1])
    if network is None:
        raise ValueError(f"{parts[0]}: unknown host")
    address = _address(ip)
    if address is None:
        raise ValueError(f"{ip}: unknown host")
    host_bits = network.max_prefixlen - prefix
    mask = -1 << host_bits if host_bits >= 0 else -1
    lower = int(network) & mask
    return lower <= int(address) <= lower + ~mask


def _split(text: str) -> list[str]:
    parts = text.split("/")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _is_valid_ip(text: str) -> bool:
    if _PLAIN_IPV4.fullmatch(text):
        return all(int(part) < 1 << _BITS for part in text.split("."))
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


def _is_valid_cidr(text: str) -> bool:
    parts = _split(text)
    if len(parts) != 2:
        return False
    network = _address(parts[0])
    return network is not None and bool(_INTEGER.fullmatch(parts[1])) and 0 <= int(parts[1]) <= network.max_prefixlen


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f'For input string: "{text}"')
    return int(text)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """An address as Java reads it: nothing is the loopback address, and IPv4 may have less than four parts."""
    if not text:
        return _LOOPBACK
    parts = text.split(".")
    if len(parts) <= _PARTS_MAX and all(part.isdecimal() for part in parts):
        return _short_ipv4([int(part) for part in parts])
    try:
        address = IPv6Address(text)
    except AddressValueError:
        return None
    return address.ipv4_mapped or address


def _short_ipv4(parts: list[int]) -> IPv4Address | None:
    """The last part fills all places that are left."""
    places = _PARTS_MAX + 1 - len(parts)
    if any(part >= 1 << _BITS for part in parts[:-1]) or parts[-1] >= 1 << (_BITS * places):
        return None
    value = parts[-1]
    for place, part in enumerate(parts[:-1]):
        value |= part << (_BITS * (_PARTS_MAX - 1 - place))
    return IPv4Address(value)
