"""Runs cases as tasks of Spark: on this machine, or on a cluster whose workers share the campaign's directory.

A task has many cases, and runs one after the other as `here` does: so its worker imports everything once. Workers
write the parts of the campaign and land the runs, and the driver reads the parts; through Spark itself goes only which
cases to run. A session of Spark Connect does it, too.
"""

import atexit
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import attrs
import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from emulator.base.process_wide import look_for_garbage_rarely
from emulator.campaign.campaign import Case
from emulator.campaign.case import DiskError
from emulator.campaign.directory import CampaignDirectory, CampaignError, first_lines, opened
from emulator.campaign.first_difference import difference
from emulator.campaign.landing import CampaignLanding
from emulator.campaign.on_this_machine import TICK_S, Terms, execute_here
from emulator.campaign.results import CaseResult
from emulator.dataset.connect import is_connect
from emulator.dataset.failures import gist
from emulator.dataset.sessions import describe
from emulator.lake.errors import DatasetError
from emulator.trace.run_directory import versions

_TASKS_PER_CORE = 4
"""So that a core with quick runs takes more of them."""
_CASES_MAX = 50
"""Of one task: what is lost, in the worst case, with a worker that dies."""
_CORES_BEHIND_CONNECT = 8
"""A session of Connect does not report how many cores there are."""
_ANSWER = "text string, is_of_disk boolean"


def execute_on_spark(
    directory: CampaignDirectory, cases: Sequence[Case], terms: Terms, *, connect: Callable[[], SparkSession]
) -> Iterator[CaseResult | None]:
    """Run cases on Spark; workers append their lines to parts.

    Args:
        directory: of the campaign, on a file system that driver and workers share.
        cases: to run.
        terms: which traces stay, and how long a run may take.
        connect: opens the session; it is not called if there are no cases.

    Yields:
        Each case when its line has been read; None about four times a second.

    Raises:
        UserError: the session cannot be opened.
        CampaignError: its workers cannot run.
        DiskError: a worker could not write.
    """
    if not cases:
        return
    session = connect()
    waiting = dict.fromkeys(cases)
    reader = directory.reader()
    for _ in reader.news():
        pass  # what is there already
    job = _Job(directory.path.resolve(), cases, terms, session, allow_code=directory.allows_code)
    job.start()
    try:
        while True:
            ended = not job.is_alive()
            for case_result in reader.news():
                if case_result.case in waiting:
                    del waiting[case_result.case]
                    yield case_result
            if ended:
                break
            yield None
            time.sleep(TICK_S)
    finally:
        job.cancel()
    job.check()
    if waiting:
        where = describe(session)
        raise CampaignError(f"{where}: {len(waiting):,} runs have ended on no worker that shares {directory.path}")


class _Job(threading.Thread):
    """The Spark job, in a thread: the main thread reads what its tasks have written."""

    def __init__(
        self, path: Path, cases: Sequence[Case], terms: Terms, session: SparkSession, *, allow_code: bool
    ) -> None:
        super().__init__(daemon=True, name="campaign on Spark")
        self._path = path
        self._cases = cases
        self._terms = terms
        self._session = session
        self._allow_code = allow_code
        self._error: Exception | None = None
        self._troubles: list[_Trouble] = []

    def run(self) -> None:
        """Run all cases."""
        try:
            cores = _cores(self._session)
            size = max(1, min(_CASES_MAX, len(self._cases) // (_TASKS_PER_CORE * cores)))
            chunks = [tuple(self._cases[at : at + size]) for at in range(0, len(self._cases), size)]
            task = _Task(str(self._path), self._terms, tuple(chunks), allow_code=self._allow_code)
            numbers = self._session.range(0, len(chunks), 1, len(chunks))
            self._troubles = [_Trouble(*row) for row in numbers.mapInArrow(task.execute, _ANSWER).collect()]
        except Exception as error:  # noqa: BLE001 - `check` raises it in the thread that waits
            self._error = error

    def cancel(self) -> None:
        """End the tasks that are left."""
        if not self.is_alive():
            return
        with suppress(Exception):  # Java, or the server, may be gone
            if is_connect(self._session):
                self._session.interruptAll()
            else:
                self._session.sparkContext.cancelAllJobs()

    def check(self) -> None:
        """Raise what ended the job.

        Raises:
            CampaignError: Spark failed, or a worker could not run.
            DiskError: a worker could not write.
        """
        if self._error is not None:
            raise CampaignError(f"{describe(self._session)}: {gist(str(self._error))}") from self._error
        for trouble in self._troubles:
            raise (DiskError if trouble.is_of_disk else CampaignError)(trouble.text)


def _cores(session: SparkSession) -> int:
    return _CORES_BEHIND_CONNECT if is_connect(session) else session.sparkContext.defaultParallelism


@attrs.frozen
class _Trouble:
    """Why a task left cases out."""

    text: str
    is_of_disk: bool


@attrs.frozen
class _Task:
    """What a worker of Spark does."""

    path: str
    """Of the campaign's directory."""
    terms: Terms
    chunks: tuple[tuple[Case, ...], ...]
    """All cases of the job; the rows of Spark are their numbers."""
    allow_code: bool
    """Whether scenarios may run code that they name."""

    def execute(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the cases of some chunks; returns what kept cases from being run."""
        look_for_garbage_rarely()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for trouble in self._execute(self.chunks[number]):
                    yield pa.RecordBatch.from_pylist([attrs.asdict(trouble)])

    def _execute(self, chunk: tuple[Case, ...]) -> Iterator[_Trouble]:
        """Run the cases of a chunk, except those that have lines: Spark repeats a task whose worker died."""
        try:
            directory = opened(self.path, allow_code=self.allow_code)
            _refuse_other_versions(directory)
            ended = self._ended(directory)
            cases = [case for case in chunk if case not in ended]
            for _ in execute_here(directory, cases, self.terms, jobs=1):
                pass
        except CampaignError as error:
            yield _Trouble(f"a worker cannot run: {error}", is_of_disk=False)
        except DatasetError as error:
            yield _Trouble(f"a worker cannot land: {error}", is_of_disk=False)
        except DiskError as error:
            yield _Trouble(str(error), is_of_disk=True)

    def _ended(self, directory: CampaignDirectory) -> dict[Case, CaseResult]:
        """The cases with lines, but for those whose runs have to be landed and are gone."""
        lines = first_lines(directory.reader().news())
        ended = {case: case_result for case, case_result in lines.items() if case_result.ended}
        if self.terms.to is None:
            return ended
        landing = CampaignLanding(directory, self.terms.to)
        return {case: case_result for case, case_result in ended.items() if not landing.lacks(case_result)}


def _refuse_other_versions(directory: CampaignDirectory) -> None:
    differs = difference(directory.versions, versions())
    if differs:
        raise CampaignError(f"version of {differs}, on {socket.gethostname()}: install the same versions everywhere")


def remove_work_at_exit(master: str) -> None:
    """Workers of a local cluster write into the installed package; remove what this process will have left there.

    Args:
        master: of a session that is not open yet.
    """
    if master.startswith("local-cluster"):
        work = Path(pyspark.__file__).parent / "work"
        before = dict.fromkeys(work.glob("app-*"))
        # Registered before Spark's own end is, so that it runs after that.
        atexit.register(_remove_new, work, before)


def _remove_new(work: Path, before: dict[Path, None]) -> None:
    for path in work.glob("app-*"):
        if path not in before:
            shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        work.rmdir()
