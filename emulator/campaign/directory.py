"""The directory of a campaign: what is run stands in its head, what was run in its parts.

campaign.json    what is run: variants, seeds, versions
scenarios/       a scenario file for each variant, to run one of its runs again
parts/           a line for each ended run
runs/            the traces that were retained: <variant>-seed<seed>
unlanded/        traces that wait until they are in the dataset, or until it is known which of them stay
landed.json      in which dataset the runs were landed, whose gold has what their lines lack
dataset/         that dataset, unless --to names another place
tables/          outcomes and findings as Parquet, made again at the end
junit.xml        for continuous integration, made again at the end
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

from emulator.base.errors import UserError
from emulator.base.files import UnexpectedFileError, open_to_write, read_bytes, require_own_folder
from emulator.campaign.campaign import Campaign, Case, cases
from emulator.campaign.digest import DIGEST, campaign_digest, origin
from emulator.campaign.first_difference import difference
from emulator.campaign.parts import PARTS, PartsReader, PartWriter
from emulator.campaign.results import CaseResult, better
from emulator.campaign.scenario_files import SCENARIOS, scenario_file, scenario_problem
from emulator.campaign.seeds import read_seeds, seeds_text
from emulator.lake.filesystems import located
from emulator.spec import Scenario, UserCode, from_dict, to_dict
from emulator.spec.code.permission_of_code import ALLOW_CODE
from emulator.spec.reading.secrets import marks_of_references, with_stand_ins
from emulator.spec.reading.user_functions import named_code, sources
from emulator.trace.files import OWNER_ALONE, RunFiles, put_in_place
from emulator.trace.run_directory import versions
from emulator.trace.schema import SCHEMA_VERSION, TraceLevel
from emulator.trace.seals import BrokenSealError, checksum, sealed, unsealed

HEAD = "campaign.json"
RUNS, TABLES = "runs", "tables"
UNLANDED = "unlanded"
"""Folder of the runs whose traces are removed when they have been landed in a dataset, or judged."""
UNDER_WAY = ".under-way"
"""Folder of the runs that are being run; what a killed emulator left there is removed by the next one."""
LANDED, DATASET = "landed.json", "dataset"
_LOCK = ".lock"
_REMOVED = "-removed"
CAMPAIGN_VERSION = 8
"""Version of the form of this directory, and of the tables of findings in it."""
_WITHOUT_DIGEST = 7
"""The version before: it is read, but nothing in it names its campaign, and no run is added to it."""
_FILES = RunFiles()
_GO_ON = "give this campaign another name, or remove the directory"


class CampaignError(UserError):
    """A campaign cannot be read, or cannot go on; the text says why, what was retained, and how to go on."""


@attrs.frozen
class CampaignDirectory:
    """One campaign on disk."""

    path: Path
    variants: Mapping[str, Scenario]
    """Mapping name -> scenario, in which other values stand for secrets: runs do the same with them."""
    seeds: tuple[int, ...]
    versions: Mapping[str, str]
    """Of the packages that executed it."""
    level: TraceLevel
    """Which rows its traces have."""
    conditions: Mapping[str, str] = attrs.Factory(dict)
    """Mapping variant -> the condition in which it is run; empty: the campaign has none."""
    digest: str = ""
    """Of all that decides its results; empty: the release that began it knew no digests."""
    written: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict, repr=False)
    """Mapping variant -> the tables of its scenario, as the head has them."""
    code: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    """Mapping file next to the scenarios -> checksum, of the modules whose functions they name."""

    @property
    def allows_code(self) -> bool:
        """Whether its scenarios may run code that they name."""
        return any(scenario.code.is_allowed for scenario in self.variants.values())

    @property
    def name(self) -> str:
        """Name of the campaign."""
        return self.path.name

    def cases(self) -> tuple[Case, ...]:
        """All cases, in the order in which they are run."""
        return cases(self.variants, self.seeds)

    def scenario(self, case: Case) -> Scenario:
        """What is run in a case."""
        return attrs.evolve(self.variants[case.variant], seed=case.seed)

    def command(self, case: Case) -> str:
        """The command that runs a case again, as an ordinary run."""
        scenario = self.path / SCENARIOS / f"{case.variant}.toml"
        allowed = [ALLOW_CODE] if any(named_code(self.variants[case.variant])) else []
        return shlex.join(["rmqemu", "run", str(scenario), "--seed", str(case.seed), *allowed])

    @property
    def dataset_uri(self) -> str | None:
        """URI of the dataset in which the runs were landed that the pipeline judges; None: there is none.

        Raises:
            CampaignError: the file that names it is damaged, or of another campaign.
        """
        try:
            landed = unsealed(read_bytes(self.path / LANDED))
            uri = str(landed["dataset"])
        except FileNotFoundError:
            return None
        except (BrokenSealError, KeyError) as error:
            raise CampaignError(f"{self.path / LANDED} is damaged: {error}; rmqemu campaign --to writes it") from None
        if landed.get("campaign", "") != self.digest:
            raise CampaignError(f"{self.path / LANDED} is {origin(landed.get('campaign', ''), self.digest)}; remove it")
        return uri or located(self.path / DATASET).uri

    def set_dataset(self, uri: str) -> None:
        """Record in which dataset runs are landed; one below this directory moves with it."""
        retained = "" if uri == located(self.path / DATASET).uri else uri
        put_in_place(
            _FILES, self.path / LANDED, (sealed({"dataset": retained, "campaign": self.digest}) + "\n").encode()
        )

    def reader(self) -> PartsReader:
        """A reader of all parts."""
        return PartsReader(self.path / PARTS, self.digest)

    def part(self, files: RunFiles) -> PartWriter:
        """A new part for this process."""
        return PartWriter(self.path / PARTS, self.digest, files)

    @contextmanager
    def being_executed(self) -> Iterator[None]:
        """Inside the `with` block no other process runs this campaign.

        Raises:
            CampaignError: another one does.
            OSError: the directory cannot be written.
        """
        with os.fdopen(open_to_write(self.path / _LOCK, os.O_CREAT), "wb") as file:
            try:
                # Not flock: children would keep a lock of that kind when their parent is killed.
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                raise CampaignError(f"{self.path} is being run by another process; wait until it has ended") from None
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


def _require_own_folders(path: Path) -> None:
    """Refuse a campaign whose folders lie elsewhere: runs are moved into them, and removed from them.

    Raises:
        UnexpectedFileError: one is a link, or a file.
    """
    for folder in (PARTS, RUNS, SCENARIOS, UNLANDED, UNDER_WAY, TABLES, DATASET):
        require_own_folder(path / folder)


def remove(folder: Path) -> None:
    """Remove a folder, in which others may still write: workers of Spark, runs whose emulator was killed.

    It gets another name first, so whatever they write next fails, and a removal that is killed leaves no half of it.
    """
    removed = folder.with_name(f"{folder.name}{_REMOVED}")
    shutil.rmtree(removed, ignore_errors=True)  # of an emulator that was killed here
    with suppress(FileNotFoundError):
        folder.rename(removed)
    shutil.rmtree(removed, ignore_errors=True)


def without_digest(directory: CampaignDirectory) -> str:
    """Why it cannot be checked whether the results of a campaign belong together."""
    return f"{directory.path}/{HEAD} has no digest, an older release began it: its results cannot be checked"


def first_lines(lines: Iterator[CaseResult]) -> dict[Case, CaseResult]:
    """The line that counts of each case, in the order in which their cases were first met."""
    found: dict[Case, CaseResult] = {}
    for case_result in lines:
        found[case_result.case] = (
            better(found[case_result.case], case_result) if case_result.case in found else case_result
        )
    return found


def claim(path: Path, campaign: Campaign) -> CampaignDirectory:
    """Create the directory of a campaign, or open the one that was begun; new seeds are added to it.

    Raises:
        CampaignError: it holds something else, or cannot be written.
    """
    try:
        seeds = _seeds_there(path, campaign)
        head = _head(campaign, seeds)
        if seeds:
            _refuse_other_scenarios(path, campaign, head[DIGEST])
        every = tuple(sorted({*campaign.seeds, *seeds}))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(OWNER_ALONE, exist_ok=True)
        _require_own_folders(path)
        for folder in (PARTS, RUNS, SCENARIOS):
            (path / folder).mkdir(exist_ok=True)
        for variant in campaign.variants:
            put_in_place(
                _FILES, path / SCENARIOS / f"{variant.name}.toml", scenario_file(variant.scenario, head[DIGEST])
            )
            save_code(variant.scenario, path / SCENARIOS)
        if every != seeds:
            put_in_place(_FILES, path / HEAD, (sealed(_head(campaign, every), indent=1) + "\n").encode())
    except OSError as error:
        why = error if isinstance(error, UnexpectedFileError) else error.strerror or error
        raise CampaignError(f"{path}: the campaign cannot be retained there: {why}") from None
    return opened(path, allow_code=any(variant.scenario.code.is_allowed for variant in campaign.variants))


def is_campaign(path: Path | str) -> bool:
    """Whether a directory looks like a campaign; its head may be damaged."""
    return (Path(path) / HEAD).exists()


def opened(path: Path | str, *, allow_code: bool = False) -> CampaignDirectory:
    """Open the directory of a campaign.

    Args:
        path: of the directory.
        allow_code: whether its scenarios may run code that they name, of the modules next to them.

    Raises:
        CampaignError: it is none, is damaged, or has another version.
    """
    head = _read_head(Path(path))
    if head is None:
        raise CampaignError(f"{path} is no campaign: it has no {HEAD}")
    digest = head.get(DIGEST, "")
    if digest != (campaign_digest(head) if head["campaign_version"] == CAMPAIGN_VERSION else ""):
        raise CampaignError(f"{path}/{HEAD} was changed: its digest is not that of its content; {_GO_ON}")
    code = UserCode.next_to(Path(path) / SCENARIOS / HEAD, allow=allow_code)
    written = {name: from_dict(tables, f"{path}/{HEAD}", code=code) for name, tables in head["variants"].items()}
    marks = head.get("secrets", {})
    variants = {name: with_stand_ins(scenario, marks.get(name, {})) for name, scenario in written.items()}
    seeds = read_seeds(f"{path}/{HEAD}", head["seeds"])
    level, conditions = TraceLevel(head["trace"]), head["conditions"]
    return CampaignDirectory(
        Path(path),
        variants,
        seeds,
        head["versions"],
        level,
        conditions,
        digest,
        head["variants"],
        head.get("code", {}),
    )


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


def _refuse_other_scenarios(path: Path, campaign: Campaign, digest: str) -> None:
    for variant in campaign.variants:
        file = path / SCENARIOS / f"{variant.name}.toml"
        problem = scenario_problem(file, variant.scenario, digest) if file.exists() else ""
        if problem:
            raise CampaignError(problem)


def _head(campaign: Campaign, seeds: tuple[int, ...]) -> dict[str, Any]:
    head = {
        "campaign_version": CAMPAIGN_VERSION,
        "schema_version": SCHEMA_VERSION,
        "trace": campaign.level,
        "versions": versions(),
        "variants": {variant.name: to_dict(attrs.evolve(variant.scenario, seed=0)) for variant in campaign.variants},
        "conditions": {variant.name: variant.condition for variant in campaign.variants if variant.condition},
        "seeds": seeds_text(seeds),
    }
    marks = {variant.name: marks_of_references(variant.scenario) for variant in campaign.variants}
    if any(marks.values()):
        head["secrets"] = marks
    code = {
        str(path): checksum(content) for item in campaign.variants for path, content in sources(item.scenario).items()
    }
    if code:
        head["code"] = dict(sorted(code.items()))
    return {**head, DIGEST: campaign_digest(head)}


def _read_head(path: Path) -> dict[str, Any] | None:
    try:
        head = unsealed(read_bytes(path / HEAD))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CampaignError(f"{path / HEAD}: {error.strerror}") from None
    except BrokenSealError as error:
        raise CampaignError(f"{path / HEAD} is damaged: {error}; {_GO_ON}") from None
    readable = {"campaign_version": (CAMPAIGN_VERSION, _WITHOUT_DIGEST), "schema_version": (SCHEMA_VERSION,)}
    for key, versions_read in readable.items():
        if head.get(key) not in versions_read:
            version = f"{key.replace('_', ' ')} {head.get(key)}, this program has {versions_read[0]}"
            raise CampaignError(f"{path} has {version}: use the release that began it; or {_GO_ON}")
    return head


def save_code(scenario: Scenario, folder: Path) -> None:
    """Save the modules that a scenario names next to its file in a folder.

    Raises:
        OSError: the folder cannot be written.
    """
    for relative_path, content in sources(scenario).items():
        for parent in reversed(Path(relative_path).parents):
            require_own_folder(folder / parent)
        (folder / relative_path).parent.mkdir(parents=True, exist_ok=True)
        put_in_place(_FILES, folder / relative_path, content)
