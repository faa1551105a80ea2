"""RocketMQ's own producer and servers, in JVMs of their own: what they need, and the producer as a child to talk to."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import attrs

from studies.bench.trial import TrialError

_SOURCE = "SyncProducer.java"


class NotHereError(Exception):
    """Something cannot be measured on this machine; says what is missing."""


@cache
def class_path() -> str:
    """The jars of RocketMQ 5.3.3 and of what they need, fetched by Maven where they are not there yet.

    Raises:
        NotHereError: there is no Java, no Maven, or no way to the jars.
    """
    missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
    if missing:
        raise NotHereError(f"{', '.join(missing)} not found on this machine")
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "jars.txt"
        (Path(folder) / "pom.xml").write_bytes(_resource("pom.xml"))
        command = ["mvn", "-B", "-q", "dependency:build-classpath", f"-Dmdep.outputFile={listed}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotHereError(f"Maven gets no RocketMQ 5.3.3: {_first_complaint(done.stdout)}")
        return listed.read_text(encoding="utf-8")


@attrs.frozen
class Load:
    """What a producer sends."""

    threads: int = 1
    body_bytes: int = 100
    batch: int = 1
    """Messages of one send."""


@attrs.frozen
class SyncProducer:
    """A JVM with a producer in it, which has loaded what a send takes."""

    _process: "subprocess.Popen[str]"

    def first_message_at_s(self, address: str) -> float:
        """Send until the first message is accepted; returns the wall clock of that moment.

        Args:
            address: of the nameserver, which need not be there yet.
        """
        return int(self._ask(f"first {address}")) / 1_000

    def send(self, address: str, load: "Load", *, warm_s: int, run_s: int) -> list[int]:
        """Send as often as so many threads can; returns how long each send took in microseconds, ascending."""
        words = f"send {address} {load.threads} {warm_s} {run_s} {load.body_bytes} {load.batch}"
        return [int(took) for took in self._ask(words).split()[1:]]

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise TrialError(f"the Java producer has died while it was to `{line}`")
        return answer


@contextmanager
def sync_producer() -> Iterator[SyncProducer]:
    """A producer that is ready to be reported what to do.

    Raises:
        NotHereError: see `class_path`.
    """
    jars = class_path()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / _SOURCE
        source.write_bytes(_resource(_SOURCE))
        # RocketMQ's clients log into the home of who runs them.
        command = ["java", "-Xmx256m", f"-Duser.home={folder}", "-cp", jars, str(source)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        with process:
            try:
                assert process.stdout is not None
                while (line := process.stdout.readline()) != "ready\n":
                    if not line:
                        raise TrialError("the Java producer does not start")
                yield SyncProducer(process)
            finally:
                process.kill()


def _resource(name: str) -> bytes:
    return (Path(__file__).parent / "guest" / name).read_bytes()


def _first_complaint(printed: str) -> str:
    return next((line for line in printed.splitlines() if "ERROR" in line), "it does not say why")
