"""RocketMQ's end-to-end tests of its Go client, compiled from a checkout and run next to an emulated proxy."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import attrs

from guests.e2e_suite import SHIM, DependenciesMissingError, output_of
from guests.integration_suite import Outcome, TestResult

GO_RESULTS = SHIM / "golang"
_BUILD_WITHIN_S = 900
_RESULT = re.compile(r"--- (PASS|FAIL|SKIP): (\w+) \(")
_OUTCOMES = {"PASS": Outcome.PASSED, "FAIL": Outcome.FAILED, "SKIP": Outcome.IGNORED}
_WHERE = "NAMESERVER=$NAMESRV_ADDR GRPC_ENDPOINT=$RMQEMU_ENDPOINTS"
_MQADMIN = "exec java -Duser.home='{home}' -cp '{class_path}' org.apache.rocketmq.tools.command.MQAdminStartup \"$@\"\n"


@attrs.frozen
class GoEndToEndSuite:
    """The compiled tests."""

    programs: Mapping[str, Path]
    """Mapping name of a package of tests -> its program."""

    def run(self, name: str, folder: Path, within_s: float) -> list[TestResult]:
        """Run the tests of a package in a process of its own, with a cluster of its own.

        Args:
            name: of the package.
            folder: of the run.
            within_s: longest time; the tests that have ended by then are returned.
        """
        command = ["sh", "-c", f'{_WHERE} exec "$0" -test.v', str(self.programs[name])]
        output = output_of(command, folder, within_s, project=folder)
        print(output)  # noqa: T201 - pytest shows it where a test fails
        return [TestResult(test, _OUTCOMES[mark]) for mark, test in _RESULT.findall(output)]


def build_go_suite(source: Path, folder: Path, class_path: str) -> GoEndToEndSuite:
    """Compile a copy of the tests, with the client that their `go.mod` names.

    The tests create topics and groups with `rocketmq-admintools/bin/mqadmin` next to their folder.

    Args:
        source: a checkout of apache/rocketmq-e2e, with its folder `golang`.
        folder: where the copy and the programs go.
        class_path: of RocketMQ's tools.
    """
    copy = shutil.copytree(source / "golang", folder / "golang")
    mqadmin = folder / "rocketmq-admintools" / "bin" / "mqadmin"
    mqadmin.parent.mkdir(parents=True)
    mqadmin.write_text(_MQADMIN.format(home=folder, class_path=class_path), encoding="utf-8")
    downloaded = _go(copy, "mod", "download")
    if downloaded.returncode:
        raise DependenciesMissingError(downloaded.stderr.strip().partition("\n")[0])
    programs = folder / "programs"
    compiled = _go(copy, "test", "-c", "-o", f"{programs}/", "./mqgotest/...")
    assert compiled.returncode == 0, compiled.stderr
    return GoEndToEndSuite({path.stem: path for path in sorted(programs.glob("*.test"))})


def _go(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["go", *words], cwd=project, check=False, capture_output=True, text=True, timeout=_BUILD_WITHIN_S
    )
