"""The pictures of the rooms show the code as it is."""

import re
from pathlib import Path

import pytest

from project.rooms import PICTURES, ROOT, SERVICE_CHARS_MAX, Room, floors, picture

ARC = re.compile(r'd="M\d+ (\d+) C\d+ \d+ \d+ \d+ \d+ (\d+)"')


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.parent.name)
def test_a_picture_is_drawn_from_the_code_as_it_is(path):
    assert path.read_text(encoding="utf-8") == picture(PICTURES[path]), "make rooms draws it again"


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.parent.name)
def test_every_import_goes_down(path):
    arcs = [(int(above), int(below)) for above, below in ARC.findall(path.read_text(encoding="utf-8"))]

    assert arcs
    assert [arc for arc in arcs if arc[0] >= arc[1]] == []


@pytest.mark.parametrize("house", ["emulator", "nodes", "nodes.broker", "nodes.broker.tables"])
def test_every_package_is_shown_with_its_duty(house):
    shown = [module for floor in floors(house) for module in floor]
    packages = [f"{house}.{path.parent.name}" for path in (ROOT / Path(*house.split("."))).glob("*/__init__.py")]

    assert [package for package in packages if package not in shown] == []
    assert [module for module in shown if not 0 < len(Room(house, module, 0).service) <= SERVICE_CHARS_MAX] == []
