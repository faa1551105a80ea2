"""Sizes as people write them."""

import pytest

from emulator.spec import SpecError
from emulator.spec.tables.sizes import size_of
from support.every_case import each_case


@each_case(
    ("text", "size_bytes"),
    [("1", 1), ("200MB", 200_000_000), ("1 GiB", 1 << 30), ("16kB", 16_000), ("2KiB", 2_048), ("3GB", 3 * 10**9)],
)
def test_a_size_is_a_number_with_a_unit_or_without(text, size_bytes):
    assert size_of("--store-max", text) == size_bytes


@each_case("text", ["", "0", "MB", "-1MB", "1.5GB", "200 mb", "200MBit", "99999999999GB", "٣", "1MB\n"])
def test_anything_else_is_refused_in_one_line(text):
    with pytest.raises(SpecError, match=r"^--store-max: expected bytes >= 1 such as 200MB or 1GiB, not"):
        size_of("--store-max", text)
