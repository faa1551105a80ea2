"""RocketMQ's own end-to-end tests of its 5.x clients pass next to an emulated proxy, as the tables in `e2e` record.

They need a checkout of apache/rocketmq-e2e: ROCKETMQ_E2E is its folder. One class alone: -k TagFilterTest.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from guests.e2e_go_suite import GO_RESULTS, GoEndToEndSuite, build_go_suite
from guests.e2e_suite import SHIM, DependenciesMissingError, EndToEndSuite, build_suite
from guests.integration_suite import Outcome, RecordedClass, TestResult, recorded_classes

pytestmark = pytest.mark.guests
_WITHIN = 3
"""Longest time of a class, in lengths of its recorded run."""
_START_S = 120
SOURCE = "ROCKETMQ_E2E"


def checkout(project: str) -> Path:
    """The checkout that the environment names, if it has a file."""
    source = os.environ.get(SOURCE)
    if source is None:
        pytest.skip(f"{SOURCE} names no checkout of apache/rocketmq-e2e; no Maven artefact or Go module has its tests")
    folder = Path(source).resolve()
    if not (folder / project).is_file():
        pytest.fail(f"{SOURCE}: {source} has no {project}; expected a checkout of apache/rocketmq-e2e")
    return folder


@pytest.fixture(scope="module")
def suite(tmp_path_factory, need) -> EndToEndSuite:
    need("mvn", "java", "javac")
    source = checkout("java/e2e/pom.xml")
    try:
        return build_suite(source, tmp_path_factory.mktemp("e2e"))
    except DependenciesMissingError as error:
        pytest.skip(f"Maven cannot get the jars of RocketMQ's end-to-end tests: {error}")


@pytest.fixture(scope="module")
def go_source(need) -> Path:
    need("go", "mvn", "java")
    return checkout("golang/go.mod")


@pytest.fixture(scope="module")
def go_suite(tmp_path_factory, go_source, class_path) -> GoEndToEndSuite:
    try:
        return build_go_suite(go_source, tmp_path_factory.mktemp("e2e-go"), class_path)
    except DependenciesMissingError as error:
        pytest.skip(f"Go cannot get the modules of RocketMQ's end-to-end tests: {error}")


def longest_s(recorded: RecordedClass) -> float:
    """Longest time of its run, in seconds."""
    return _START_S + _WITHIN * recorded.seconds


def assert_as_recorded(recorded: RecordedClass, results: Sequence[TestResult]) -> None:
    """What passed passes, and nothing else."""
    passed = {result.name for result in results if result.outcome is Outcome.PASSED}
    assert set(recorded.passed) - passed == set(), [result for result in results if result.why]
    assert passed - set(recorded.passed) == set(), "passes now: results.toml does not have it"


@pytest.mark.parametrize(
    "recorded", [each for each in recorded_classes(SHIM) if each.passed], ids=lambda each: each.name
)
def test_what_passed_passes(recorded: RecordedClass, suite, tmp_path):
    assert_as_recorded(recorded, suite.run(recorded.name, tmp_path, longest_s(recorded)))


@pytest.mark.parametrize("recorded", list(recorded_classes(GO_RESULTS)), ids=lambda each: each.name)
def test_what_passed_of_the_go_client_passes(recorded: RecordedClass, go_suite, tmp_path):
    assert_as_recorded(recorded, go_suite.run(recorded.name, tmp_path, longest_s(recorded)))


def test_every_class_of_the_suite_is_recorded(suite):
    assert set(suite.modules) - {each.name for each in recorded_classes(SHIM)} == set()


def test_every_package_of_the_go_suite_is_recorded(go_suite):
    assert set(go_suite.programs) - {each.name for each in recorded_classes(GO_RESULTS)} == set()
