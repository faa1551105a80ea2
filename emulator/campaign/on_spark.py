"""Plays cases as tasks of Spark: on this machine, or on a cluster whose workers share the campaign's directory.

A task has many cases, and plays one after the other as `here` does: so its worker imports everything once. Workers
write the parts of the campaign, and the driver reads them; through Spark itself goes only which cases to play.
"""

import atexit
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import attrs
import pyspark
from pyspark.sql import SparkSession

from emulator.base.errors import one_line
from emulator.campaign.campaign import Case
from emulator.campaign.case import DiskError
from emulator.campaign.directory import CampaignDirectory, CampaignError, difference, first_lines, opened
from emulator.campaign.here import TICK_S, Terms, play_here
from emulator.campaign.landing import CampaignLanding
from emulator.campaign.played import Outcome, Played
from emulator.dataset.masters import settings_of
from emulator.dataset.spark import spark_session
from emulator.dataset.workers import WORKERS_S, has_workers, no_workers
from emulator.lake.errors import DatasetError
from emulator.trace.run_directory import versions

_TASKS_PER_CORE = 4
"""So that a core with quick runs takes more of them."""
_CASES_MOST = 50
"""Of one task: what is lost, in the worst case, with a worker that dies."""


def play_on_spark(
    directory: CampaignDirectory, cases: Sequence[Case], terms: Terms, *, master: str
) -> Iterator[Played | None]:
    """Play cases on Spark; workers append their lines to parts.

    Args:
        directory: of the campaign, on a file system that driver and workers share.
        cases: to play.
        terms: which traces stay, and how long a run may take.
        master: Spark's master URL.

    Yields:
        Each case when its line has been read; None about four times a second.

    Raises:
        MasterError: the master is none, or cannot be reached.
        CampaignError: its workers cannot play.
        DiskError: a worker could not write.
    """
    if not cases:
        return
    settings = settings_of(master)
    waiting = dict.fromkeys(cases)
    reader = directory.reader()
    for _ in reader.news():
        pass  # what is there already
    job = _Job(directory.path.resolve(), cases, terms, master, settings)
    job.start()
    try:
        while True:
            ended = not job.is_alive()
            for played in reader.news():
                if played.case in waiting:
                    del waiting[played.case]
                    yield played
            if ended:
                break
            job.expect_workers()
            yield None
            time.sleep(TICK_S)
    finally:
        job.cancel()
    job.check()
    if waiting:
        raise CampaignError(f"{master}: {len(waiting):,} runs have ended on no worker that shares {directory.path}")


class _Job(threading.Thread):
    """The Spark job, in a thread: on the main thread Spark would install a handler of Ctrl-C of its own."""

    def __init__(self, path: Path, cases: Sequence[Case], terms: Terms, master: str, settings: dict[str, str]) -> None:
        super().__init__(daemon=True, name="campaign on Spark")
        self._path = path
        self._cases = cases
        self._terms = terms
        self._master = master
        self._settings = settings
        self._session: SparkSession | None = None
        self._error: Exception | None = None
        self._troubles: list[_Trouble] = []
        self._began_s = time.monotonic()
        self._has_workers = False

    def run(self) -> None:
        """Play all cases."""
        try:
            _remove_work_at_exit(self._master)
            self._session = self._connected()
            context = self._session.sparkContext
            size = max(1, min(_CASES_MOST, len(self._cases) // (_TASKS_PER_CORE * context.defaultParallelism)))
            chunks = [tuple(self._cases[at : at + size]) for at in range(0, len(self._cases), size)]
            task = _Task(str(self._path), self._terms)
            self._troubles = context.parallelize(chunks, len(chunks)).mapPartitions(task.play).collect()
        except Exception as error:  # noqa: BLE001 - `check` raises it in the thread that waits
            self._error = error

    def _connected(self) -> SparkSession:
        session = spark_session(self._master, app_name=f"rmqemu {self._path.name}", settings=self._settings)
        running = session.sparkContext.master
        if running != self._master:
            raise CampaignError(f"{self._master}: a Spark session with {running} is running here; stop it before")
        return session

    def expect_workers(self) -> None:
        """Refuse a master without workers, for which Spark would wait for ever.

        Raises:
            CampaignError: no worker has come for some time.
        """
        if self._has_workers or self._session is None or not self._master.startswith("spark:"):
            return
        self._has_workers = has_workers(self._session)
        if not self._has_workers and time.monotonic() - self._began_s > WORKERS_S:
            raise CampaignError(no_workers(self._master, WORKERS_S))

    def cancel(self) -> None:
        """End the tasks that are left."""
        if self.is_alive() and self._session is not None:
            with suppress(Exception):  # Java may be gone
                self._session.sparkContext.cancelAllJobs()

    def check(self) -> None:
        """Raise what ended the job.

        Raises:
            CampaignError: Spark failed, or a worker could not play.
            DiskError: a worker could not write.
        """
        if isinstance(self._error, CampaignError):
            raise self._error
        if self._error is not None:
            raise CampaignError(f"{self._master}: Spark failed: {_gist(self._error)}") from self._error
        for trouble in self._troubles:
            raise (DiskError if trouble.is_of_disk else CampaignError)(trouble.text)


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

    def play(self, chunks: Iterable[tuple[Case, ...]]) -> Iterator[_Trouble]:
        """Play the cases of some chunks, except those that have lines: Spark repeats a task whose worker died."""
        try:
            directory = opened(self.path)
            _refuse_other_versions(directory)
            ended = self._ended(directory)
            for chunk in chunks:
                cases = [case for case in chunk if case not in ended]
                for _ in play_here(directory, cases, self.terms, jobs=1):
                    pass
        except CampaignError as error:
            yield _Trouble(f"a worker cannot play: {error}", is_of_disk=False)
        except DatasetError as error:
            yield _Trouble(f"a worker cannot land: {error}", is_of_disk=False)
        except DiskError as error:
            yield _Trouble(str(error), is_of_disk=True)

    def _ended(self, directory: CampaignDirectory) -> dict[Case, Played]:
        """The cases with lines, but for those whose runs have to be landed and are gone."""
        lines = first_lines(directory.reader().news())
        ended = {case: played for case, played in lines.items() if played.outcome is Outcome.COMPLETE}
        if self.terms.to is None:
            return ended
        landing = CampaignLanding(directory, self.terms.to)
        return {case: played for case, played in ended.items() if not landing.lacks(played)}


def _refuse_other_versions(directory: CampaignDirectory) -> None:
    differs = difference(directory.versions, versions())
    if differs:
        raise CampaignError(f"version of {differs}, on {socket.gethostname()}: install the same versions everywhere")


def _remove_work_at_exit(master: str) -> None:
    """Workers of a local cluster write into the installed package; remove what this process will have left there."""
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


def _gist(error: Exception) -> str:
    """The line of a Spark error that says most: the last one of a traceback in a worker, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    of_worker = [line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line)]
    return one_line(of_worker[-1] if of_worker else lines[0] if lines else type(error).__name__)
