"""The table of RocketMQ's integration tests is that of the recorded results."""

from guests.integration_suite import SHIM, recorded_classes


def test_the_page_has_a_row_for_each_recorded_class():
    page = (SHIM / "README.md").read_text(encoding="utf-8").splitlines()

    assert [line for line in page if line.startswith("| `") and "IT` |" in line] == [
        each.row for each in recorded_classes() if each.name.endswith("IT")
    ]
