"""RocketMQ's own integration tests pass next to the emulator, those that the table in `integration` names.

They need the source of RocketMQ 5.3.3, which no Maven artefact has: ROCKETMQ_SOURCE is the folder of the unpacked
release. One test class alone: -k SqlFilterIT.
"""

import os
from pathlib import Path

import pytest

from guests.integration_suite import IntegrationSuite, Outcome, RecordedClass, build_suite, recorded_classes

pytestmark = pytest.mark.guests
_WITHIN = 3
"""Longest time of a class, in lengths of its recorded run."""
_START_S = 120
SOURCE = "ROCKETMQ_SOURCE"


@pytest.fixture(scope="module")
def suite(tmp_path_factory, need) -> IntegrationSuite:
    need("mvn", "java", "javac", "rmqemu")
    source = os.environ.get(SOURCE)
    if source is None:
        pytest.skip(f"{SOURCE} names no folder with the source of RocketMQ 5.3.3; no Maven artefact has its tests")
    return build_suite(Path(source), tmp_path_factory.mktemp("rocketmq"))


@pytest.mark.parametrize("recorded", [each for each in recorded_classes() if each.passed], ids=lambda each: each.name)
def test_what_passed_passes(recorded: RecordedClass, suite, tmp_path):
    results = suite.run(recorded.name, tmp_path, _START_S + _WITHIN * recorded.seconds)

    passed = {result.name for result in results if result.outcome is Outcome.PASSED}
    assert set(recorded.passed) - passed == set(), [result for result in results if result.why]
    assert passed - set(recorded.passed) == set(), "passes now: results.toml does not have it"


def test_every_class_of_the_release_is_recorded(suite):
    assert set(suite.modules) - {each.name for each in recorded_classes()} == set()
