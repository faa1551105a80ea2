"""The picture of the rooms shows the code as it is."""

import re

from project.rooms import PICTURE, ROOT, SERVICE_CHARS_MAX, Room, floors, picture

ARC = re.compile(r'd="M\d+ (\d+) C\d+ \d+ \d+ \d+ \d+ (\d+)"')


def test_the_picture_is_drawn_from_the_code_as_it_is():
    assert PICTURE.read_text(encoding="utf-8") == picture(), "make rooms draws it again"


def test_every_import_goes_down():
    arcs = [(int(above), int(below)) for above, below in ARC.findall(PICTURE.read_text(encoding="utf-8"))]

    assert arcs
    assert [arc for arc in arcs if arc[0] >= arc[1]] == []


def test_every_package_is_shown_with_its_duty():
    for house in ("emulator", "nodes"):
        shown = [module for floor in floors(house) for module in floor]
        packages = [f"{house}.{path.parent.name}" for path in (ROOT / house).glob("*/__init__.py")]

        assert [package for package in packages if package not in shown] == []
        assert [module for module in shown if not 0 < len(Room(module, 0).service) <= SERVICE_CHARS_MAX] == []
