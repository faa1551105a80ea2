"""JSON of compared variants: programs that know no NaN can read it."""

import json
from math import inf, nan

import pytest

from emulator.cli.compare_campaign import json_text


def test_what_is_not_known_is_null():
    value = {"mean": {"value": 1.5, "low": nan, "high": inf}, "all": (nan, 2, "NaN", None, True)}
    read = json.loads(json_text(value), parse_constant=pytest.fail)
    assert read == {"mean": {"value": 1.5, "low": None, "high": None}, "all": [None, 2, "NaN", None, True]}
