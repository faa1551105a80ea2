"""The tables of RocketMQ's end-to-end tests are those of the recorded results."""

from guests.e2e_go_suite import GO_RESULTS
from guests.e2e_suite import SHIM
from guests.integration_suite import recorded_classes


def test_the_page_has_a_row_for_each_recorded_class():
    page = (SHIM / "README.md").read_text(encoding="utf-8").splitlines()

    recorded = [*recorded_classes(SHIM), *recorded_classes(GO_RESULTS)]
    assert [line for line in page if line.startswith("| `")] == [each.row for each in recorded]
