"""`rmqemu check`: warns about harmful settings of a scenario, or of the scenarios of a campaign."""

from pathlib import Path
from typing import TYPE_CHECKING

from emulator.base.printing import print_line
from emulator.base.text import listed
from emulator.cli.terminal import NAME
from emulator.spec import read
from emulator.spec.reading.file import is_campaign_file
from emulator.spec.rocketmq.file_kinds import CONFIGURATION_SUFFIXES, FileKind
from emulator.spec.warnings.harmful_settings import check as harmful_settings

if TYPE_CHECKING:
    from emulator.campaign.campaign import Campaign


def check_file(path: Path, *, allow_code: bool, kind: FileKind | None = None) -> None:
    """Print a line for each harmful setting, or for each option of a configuration file.

    Args:
        path: of a scenario file, a campaign file or a configuration file, or a name of the package.
        allow_code: whether code that it names is tried.
        kind: of the node that a configuration file is for; None: its options show it.

    Raises:
        UserError: it can be none of them.
    """
    if kind is not None or path.suffix.lower() in CONFIGURATION_SUFFIXES:
        from emulator.cli.import_configuration import print_account

        print_account(path, kind)
        return
    if is_campaign_file(path):
        from emulator.campaign.file import load_campaign

        _check_campaign(path, load_campaign(path, allow_code=allow_code))
        return
    _print_warnings([setting.line() for setting in harmful_settings(read(path, allow_code=allow_code))])


def _check_campaign(path: Path, campaign: "Campaign") -> None:
    """Print the warnings of all variants; one that only some variants have names them."""
    variants_of: dict[str, list[str]] = {}
    for variant in campaign.variants:
        for setting in harmful_settings(variant.scenario):
            variants_of.setdefault(setting.line(), []).append(variant.name)
    everywhere = len(campaign.variants)
    _print_warnings(
        [line if len(names) == everywhere else f"{line} (only {listed(names)})" for line, names in variants_of.items()]
    )
    runs = f"{everywhere:,} variants with {len(campaign.seeds):,} seeds are {len(campaign.cases()):,} runs"
    print_line(f"this is a campaign file: {runs}; {NAME} campaign {path} runs it")


def _print_warnings(lines: list[str]) -> None:
    for line in lines:
        print_line(f"warning: {line}")
    if not lines:
        print_line("no warnings")
