"""`rmqemu examples`: the scenarios and campaigns that come with the package."""

import json
from collections.abc import Iterable

from emulator.base.files import DOCUMENT_BYTES_MAX, read_text
from emulator.base.printing import print_json, print_line
from emulator.spec.bundled import (
    BundledFile,
    bundled_campaigns,
    bundled_path,
    bundled_scenarios,
)

_COLUMNS_BETWEEN = 2


def show_examples(*, as_json: bool) -> None:
    """Print the name of each, and what happens in it."""
    kinds = {"run": bundled_scenarios().values(), "campaign": bundled_campaigns().values()}
    if as_json:
        listed = {command: [_brief(item) for item in some] for command, some in kinds.items()}
        print_json(json.dumps(listed, indent=2, ensure_ascii=False))
        return
    print_line("scenarios, for rmqemu run NAME and rmqemu up NAME:")
    _print(kinds["run"])
    print_line()
    print_line("campaigns, for rmqemu campaign NAME:")
    _print(kinds["campaign"])


def print_example(name: str) -> None:
    """Print the file of a scenario or a campaign.

    Raises:
        SpecError: there is no such example.
    """
    for line in read_text(bundled_path(name), DOCUMENT_BYTES_MAX).splitlines():
        print_line(line)


def _print(some: Iterable[BundledFile]) -> None:
    listed = list(some)
    width = max(len(element.name) for element in listed) + _COLUMNS_BETWEEN
    for item in listed:
        print_line(f"  {item.name:<{width}}{item.about}")


def _brief(bundled_file: BundledFile) -> dict[str, str]:
    return {"name": bundled_file.name, "path": str(bundled_file.path), "about": bundled_file.about}
