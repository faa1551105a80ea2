"""Draws packages from top to bottom, as the import contracts order them: `python -m project.rooms`."""

import ast
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import attrs
import grimp

ROOT = Path(__file__).parents[2]
PICTURES = {
    ROOT / "emulator" / "rooms.svg": ("emulator", "faults", "nodes"),
    ROOT / "nodes" / "broker" / "rooms.svg": ("nodes.broker", "nodes.broker.tables"),
}
"""Mapping picture -> the packages whose rooms it shows."""
_WIDTH, _MARGIN, _ROW, _HEAD, _GAP = 1150, 16, 26, 40, 14
_SERVICE_X, _ARCS_X = 190, 950
SERVICE_CHARS_MAX = 112
"""What fits next to the name of a package."""
_STYLE = """
text { font-family: system-ui, sans-serif; font-size: 13px; fill: #1f2933; }
.house { font-weight: 700; font-size: 15px; }
.room { font-family: ui-monospace, monospace; font-weight: 600; }
.duty { fill: #52606d; }
.emulator { fill: #eef4fb; stroke: #5b8fc7; }
.faults { fill: #fdf1ec; stroke: #d0785a; }
.nodes { fill: #eef8f0; stroke: #5aa06c; }
.floor { stroke: #cbd2d9; stroke-dasharray: 2 3; }
.arc { fill: none; stroke: #5b8fc7; stroke-opacity: 0.35; }
.page { fill: #ffffff; }
"""


@attrs.frozen
class Room:
    """A package or module of a house, and the height at which it stands."""

    house: str
    module: str
    y: int

    @property
    def name(self) -> str:
        """Its name in the house."""
        return self.module.removeprefix(f"{self.house}.")

    @property
    def service(self) -> str:
        """The first sentence of its docstring."""
        path = ROOT / Path(*self.module.split("."))
        source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        first = (ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or "").partition("\n\n")[0]
        return " ".join(first.replace("`", "").split()).removesuffix(".")


def floors(house: str) -> list[list[str]]:
    """The packages of a house from top to bottom; those that share a floor do not import each other."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    for contract in contracts:
        if contract.get("containers") == [house]:
            return [[f"{house}.{name}" for name in layer.split(" | ")] for layer in contract["layers"]]
    return [[house]]


def picture(houses: Sequence[str]) -> str:
    """The whole picture as SVG."""
    y, body, rooms = _MARGIN, list[str](), list[Room]()
    for house in houses:
        drawn, y = _house(house, y, rooms)
        body += [*drawn]
        y += _GAP
    arcs = list(_arcs(rooms))
    height = y - _GAP + _MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}">',
            f"<style>{_STYLE}</style>",
            f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
            *body,
            *arcs,
            "</svg>",
            "",
        ]
    )


def _house(house: str, top: int, rooms: list[Room]) -> tuple[list[str], int]:
    levels = floors(house)
    alone = levels == [[house]]
    bottom = top + _HEAD + (0 if alone else sum(map(len, levels)) * _ROW + 6)
    width, height = _WIDTH - 2 * _MARGIN, bottom - top
    drawn = [
        f'<rect class="{house.partition(".")[0]}" x="{_MARGIN}" y="{top}" width="{width}" height="{height}" rx="6"/>',
        f'<text class="house" x="{2 * _MARGIN}" y="{top + 26}">{house}</text>',
        f'<text class="duty" x="{_SERVICE_X}" y="{top + 26}">{escape(Room(house, house, top).service)}</text>',
    ]
    y = top + _HEAD
    for level in () if alone else levels:
        drawn.append(f'<line class="floor" x1="{2 * _MARGIN}" x2="{_ARCS_X}" y1="{y}" y2="{y}"/>')
        for module in level:
            room = Room(house, module, y + _ROW // 2)
            rooms.append(room)
            drawn += [
                f'<text class="room" x="{3 * _MARGIN}" y="{y + 18}">{room.name}</text>',
                f'<text class="duty" x="{_SERVICE_X}" y="{y + 18}">{escape(room.service)}</text>',
            ]
            y += _ROW
    return drawn, bottom


def _arcs(rooms: list[Room]) -> Iterator[str]:
    graph = grimp.build_graph(*dict.fromkeys(room.house.partition(".")[0] for room in rooms))
    for upper in rooms:
        for lower in rooms:
            if upper is lower or upper.house != lower.house:
                continue
            if graph.direct_import_exists(importer=upper.module, imported=lower.module, as_packages=True):
                reach = min(150, 12 + abs(lower.y - upper.y) // 3)
                x, bend = _ARCS_X, _ARCS_X + reach * 4 // 3
                title = f"<title>{upper.module} imports {lower.module}</title>"
                curve = f"M{x} {upper.y} C{bend} {upper.y} {bend} {lower.y} {x} {lower.y}"
                yield f'<path class="arc" d="{curve}">{title}</path>'


if __name__ == "__main__":
    for path, shown in PICTURES.items():
        path.write_text(picture(shown), encoding="utf-8")
