"""The scenario files of a campaign: one for each variant, with which one of its runs is executed again."""

import re
from pathlib import Path

import attrs
import tomli_w

from emulator.base.errors import UserError
from emulator.campaign.digest import origin
from emulator.campaign.first_difference import difference
from emulator.spec import Scenario, from_dict, to_dict
from emulator.spec.reading.toml_file import TomlFile

SCENARIOS = "scenarios"
_HEAD = "# Of the campaign {}: copy the file before you change it.\n"
_CAMPAIGN = re.compile(r"\A# Of the campaign ([0-9a-f]+)")
_REMOVE = "remove it, and the campaign command writes it again"


def scenario_file(scenario: Scenario, campaign: str) -> bytes:
    """The file of a variant.

    Args:
        scenario: of the variant.
        campaign: digest of the campaign.
    """
    return (_HEAD.format(campaign) + tomli_w.dumps(to_dict(scenario))).encode()


def scenario_problem(path: Path, scenario: Scenario, campaign: str) -> str:
    """Why a file is not that of a variant; empty if it is, whatever comments, seed and forms of numbers it has.

    Args:
        path: of the file, which exists.
        scenario: of the variant.
        campaign: digest of the campaign; empty: its files name none.
    """
    try:
        file = TomlFile.read(path)
        named = _CAMPAIGN.match(file.text)
        if named is not None and named[1] != campaign:
            return f"{path} is {origin(named[1], campaign)}; {_REMOVE}"
        there = from_dict(file.tables, str(path))
    except UserError as error:
        return f"{error}; {_REMOVE}"
    plain, expected = (to_dict(attrs.evolve(item, seed=0)) for item in (there, scenario))
    differs = difference(plain, expected, names=("there", "in campaign.json"))
    return f"{path} was changed: {differs}; {_REMOVE}" if differs else ""
