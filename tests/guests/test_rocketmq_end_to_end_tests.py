"""RocketMQ's own end-to-end tests of its 5.x clients pass next to an emulated proxy, as the table in `e2e` records.

They need a checkout of apache/rocketmq-e2e: ROCKETMQ_E2E is its folder. One test class alone: -k TagFilterTest.
"""

import os
from pathlib import Path

import pytest

from guests.e2e_suite import SHIM, DependenciesMissingError, EndToEndSuite, build_suite
from guests.integration_suite import Outcome, RecordedClass, recorded_classes

pytestmark = pytest.mark.guests
_WITHIN = 3
"""Longest time of a class, in lengths of its recorded run."""
_START_S = 120
SOURCE = "ROCKETMQ_E2E"


@pytest.fixture(scope="module")
def suite(tmp_path_factory, need) -> EndToEndSuite:
    need("mvn", "java", "javac")
    source = os.environ.get(SOURCE)
    if source is None:
        pytest.skip(f"{SOURCE} names no checkout of apache/rocketmq-e2e; no Maven artefact has its tests")
    checkout = Path(source).resolve()
    if not (checkout / "java" / "e2e" / "pom.xml").is_file():
        pytest.fail(f"{SOURCE}: {source} has no java/e2e/pom.xml; expected a checkout of apache/rocketmq-e2e")
    try:
        return build_suite(checkout, tmp_path_factory.mktemp("e2e"))
    except DependenciesMissingError as error:
        pytest.skip(f"Maven cannot get the jars of RocketMQ's end-to-end tests: {error}")


@pytest.mark.parametrize(
    "recorded", [each for each in recorded_classes(SHIM) if each.passed], ids=lambda each: each.name
)
def test_what_passed_passes(recorded: RecordedClass, suite, tmp_path):
    results = suite.run(recorded.name, tmp_path, _START_S + _WITHIN * recorded.seconds)

    passed = {result.name for result in results if result.outcome is Outcome.PASSED}
    assert set(recorded.passed) - passed == set(), [result for result in results if result.why]
    assert passed - set(recorded.passed) == set(), "passes now: results.toml does not have it"


def test_every_class_of_the_suite_is_recorded(suite):
    assert set(suite.modules) - {each.name for each in recorded_classes(SHIM)} == set()
