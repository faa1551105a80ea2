"""The directory of a campaign: what is played stands in its head, what was played in its parts.

campaign.json    what is played: variants, seeds, versions
scenarios/       a scenario file for each variant, to play one of its runs again
parts/           a line for each ended run
runs/            the traces that were kept: <variant>-seed<seed>
unlanded/        traces that wait until they are in the dataset, or until it is known which of them stay
landed.json      in which dataset the runs were landed, whose gold has what their lines lack
dataset/         that dataset, unless --to names another place
tables/          outcomes and findings as Parquet, made anew at the end
junit.xml        for continuous integration, made anew at the end
"""

import fcntl
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import tomli_w

from emulator.base.errors import UserError
from emulator.base.files import UnexpectedFileError, open_to_write, read_bytes
from emulator.campaign.campaign import Campaign, Case, cases
from emulator.campaign.parts import PARTS, PartsReader
from emulator.campaign.played import Played, better
from emulator.campaign.seeds import read_seeds, seeds_text
from emulator.lake.filesystems import located
from emulator.spec import Scenario, from_dict, to_dict
from emulator.trace.files import RunFiles, put_in_place
from emulator.trace.run_directory import versions
from emulator.trace.schema import SCHEMA_VERSION, TraceLevel
from emulator.trace.seals import BrokenSealError, sealed, unsealed
from nodes.fields import quoted

HEAD = "campaign.json"
RUNS, SCENARIOS, TABLES = "runs", "scenarios", "tables"
UNLANDED = "unlanded"
"""Folder of the runs whose traces are removed when they have been landed in a dataset, or judged."""
UNDER_WAY = ".under-way"
"""Folder of the runs that are being played; what a killed emulator left there is removed by the next one."""
LANDED, DATASET = "landed.json", "dataset"
_LOCK = ".lock"
_REMOVED = "-removed"
CAMPAIGN_VERSION = 7
"""Version of the form of this directory, and of the tables of findings in it."""
_FILES = RunFiles()
_GO_ON = "give this campaign another name, or remove the directory"


class CampaignError(UserError):
    """A campaign cannot be read, or cannot go on; the text says why, what was kept, and how to go on."""


@attrs.frozen
class CampaignDirectory:
    """One campaign on disk."""

    path: Path
    variants: Mapping[str, Scenario]
    seeds: tuple[int, ...]
    versions: Mapping[str, str]
    """Of the packages that played it."""
    level: TraceLevel
    """Which rows its traces have."""
    conditions: Mapping[str, str] = attrs.Factory(dict)
    """Mapping variant -> the condition in which it is played; empty: the campaign has none."""

    @property
    def name(self) -> str:
        """Name of the campaign."""
        return self.path.name

    def cases(self) -> tuple[Case, ...]:
        """All cases, in the order in which they are played."""
        return cases(self.variants, self.seeds)

    def scenario(self, case: Case) -> Scenario:
        """What is played in a case."""
        return attrs.evolve(self.variants[case.variant], seed=case.seed)

    def command(self, case: Case) -> str:
        """The command that plays a case again, as an ordinary run."""
        scenario = self.path / SCENARIOS / f"{case.variant}.toml"
        return shlex.join(["rmqemu", "run", str(scenario), "--seed", str(case.seed)])

    @property
    def dataset_uri(self) -> str | None:
        """URI of the dataset in which the runs were landed that the pipeline judges; None: there is none.

        Raises:
            CampaignError: the file that names it is damaged.
        """
        try:
            uri = str(unsealed(read_bytes(self.path / LANDED))["dataset"])
        except FileNotFoundError:
            return None
        except (BrokenSealError, KeyError) as error:
            raise CampaignError(f"{self.path / LANDED} is damaged: {error}; rmqemu campaign --to writes it") from None
        return uri or located(self.path / DATASET).uri

    def set_dataset(self, uri: str) -> None:
        """Record in which dataset runs are landed; one below this directory moves with it."""
        kept = "" if uri == located(self.path / DATASET).uri else uri
        put_in_place(_FILES, self.path / LANDED, (sealed({"dataset": kept}) + "\n").encode())

    def reader(self) -> PartsReader:
        """A reader of all parts."""
        return PartsReader(self.path / PARTS)

    @contextmanager
    def being_played(self) -> Iterator[None]:
        """Inside the `with` block no other process plays this campaign.

        Raises:
            CampaignError: another one does.
            OSError: the directory cannot be written.
        """
        with os.fdopen(open_to_write(self.path / _LOCK, os.O_CREAT), "wb") as file:
            try:
                # Not flock: children would keep a lock of that kind when their parent is killed.
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                raise CampaignError(
                    f"{self.path} is being played by another process; wait until it has ended"
                ) from None
            except OSError:
                pass  # a file system without locks
            remove(self.path / UNDER_WAY)
            for left in (self.path / UNLANDED).glob(f"*{_REMOVED}"):
                shutil.rmtree(left, ignore_errors=True)
            (self.path / UNDER_WAY).mkdir()
            try:
                yield
            finally:
                remove(self.path / UNDER_WAY)


def remove(folder: Path) -> None:
    """Remove a folder, in which others may still write: workers of Spark, runs whose emulator was killed.

    It gets another name first, so whatever they write next fails, and a removal that is killed leaves no half of it.
    """
    removed = folder.with_name(f"{folder.name}{_REMOVED}")
    shutil.rmtree(removed, ignore_errors=True)  # of an emulator that was killed here
    with suppress(FileNotFoundError):
        folder.rename(removed)
    shutil.rmtree(removed, ignore_errors=True)


def first_lines(lines: Iterator[Played]) -> dict[Case, Played]:
    """The line that counts of each case, in the order in which their cases were first met."""
    found: dict[Case, Played] = {}
    for played in lines:
        found[played.case] = better(found[played.case], played) if played.case in found else played
    return found


def claim(path: Path, campaign: Campaign) -> CampaignDirectory:
    """Create the directory of a campaign, or open the one that was begun; new seeds are added to it.

    Raises:
        CampaignError: it holds something else, or cannot be written.
    """
    try:
        seeds = _seeds_there(path, campaign)
        every = tuple(sorted({*campaign.seeds, *seeds}))
        path.mkdir(parents=True, exist_ok=True)
        for folder in (PARTS, RUNS, SCENARIOS):
            (path / folder).mkdir(exist_ok=True)
        for variant in campaign.variants:
            put_in_place(_FILES, path / SCENARIOS / f"{variant.name}.toml", _scenario_file(variant.scenario))
        if every != seeds:
            put_in_place(_FILES, path / HEAD, (sealed(_head(campaign, every), indent=1) + "\n").encode())
    except OSError as error:
        why = error if isinstance(error, UnexpectedFileError) else error.strerror or error
        raise CampaignError(f"{path}: the campaign cannot be kept there: {why}") from None
    return opened(path)


def is_campaign(path: Path | str) -> bool:
    """Whether a directory looks like a campaign; its head may be damaged."""
    return (Path(path) / HEAD).exists()


def opened(path: Path | str) -> CampaignDirectory:
    """Open the directory of a campaign.

    Raises:
        CampaignError: it is none, is damaged, or has another version.
    """
    head = _read_head(Path(path))
    if head is None:
        raise CampaignError(f"{path} is no campaign: it has no {HEAD}")
    variants = {name: from_dict(tables, f"{path}/{HEAD}") for name, tables in head["variants"].items()}
    seeds = read_seeds(f"{path}/{HEAD}", head["seeds"])
    level, conditions = TraceLevel(head["trace"]), head["conditions"]
    return CampaignDirectory(Path(path), variants, seeds, head["versions"], level, conditions)


def _seeds_there(path: Path, campaign: Campaign) -> tuple[int, ...]:
    """The seeds of the campaign that is in the directory; empty if there is none.

    Raises:
        CampaignError: it differs in more than its seeds.
    """
    head = _read_head(path)
    if head is None:
        ours = (PARTS, RUNS, SCENARIOS, HEAD, f".{HEAD}.tmp")
        if path.exists() and any(entry.name not in ours for entry in path.iterdir()):
            raise CampaignError(f"{path} is no campaign: it has no {HEAD}; {_GO_ON}")
        return ()
    seeds = read_seeds(f"{path}/{HEAD}", head["seeds"])
    differs = difference(head, _head(campaign, seeds))
    if differs:
        raise CampaignError(f"{path} holds another campaign: {differs}; {_GO_ON}")
    return seeds


def _head(campaign: Campaign, seeds: tuple[int, ...]) -> dict[str, Any]:
    return {
        "campaign_version": CAMPAIGN_VERSION,
        "schema_version": SCHEMA_VERSION,
        "trace": campaign.level,
        "versions": versions(),
        "variants": {variant.name: to_dict(attrs.evolve(variant.scenario, seed=0)) for variant in campaign.variants},
        "conditions": {variant.name: variant.condition for variant in campaign.variants if variant.condition},
        "seeds": seeds_text(seeds),
    }


def _read_head(path: Path) -> dict[str, Any] | None:
    try:
        head = unsealed(read_bytes(path / HEAD))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CampaignError(f"{path / HEAD}: {error.strerror}") from None
    except BrokenSealError as error:
        raise CampaignError(f"{path / HEAD} is damaged: {error}; {_GO_ON}") from None
    for key, now in (("campaign_version", CAMPAIGN_VERSION), ("schema_version", SCHEMA_VERSION)):
        if head.get(key) != now:
            version = f"{key.replace('_', ' ')} {head.get(key)}, this program has {now}"
            raise CampaignError(f"{path} has {version}: use the release that began it; or {_GO_ON}")
    return head


def difference(there: Mapping[str, Any], here: Mapping[str, Any], within: str = "") -> str:
    """Where two mappings first differ, `network.delay_ms is 2 there and 3 here`; empty if they do not."""
    for key in dict.fromkeys((*there, *here)):
        at = f"{within}.{key}" if within else key
        if key not in here or key not in there:
            return f"{at} is only {'there' if key in there else 'here'}"
        one, other = there[key], here[key]
        if isinstance(one, list) and isinstance(other, list):
            one, other = _numbered(one), _numbered(other)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            found = difference(one, other, at)
            if found:
                return found
        elif one != other:
            return f"{at} is {quoted(one)} there and {quoted(other)} here"
    return ""


def _numbered(items: list[Any]) -> dict[str, Any]:
    return {str(number): item for number, item in enumerate(items)}


def _scenario_file(scenario: Scenario) -> bytes:
    return tomli_w.dumps(to_dict(scenario)).encode()
