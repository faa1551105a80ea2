"""The section `[service]` of a scenario: limits of the service verdict."""

import pytest

from emulator.spec import SpecError, from_dict, loads, to_dict
from emulator.spec.model.service_limits import ServiceLimits
from support.every_case import each_case

SCENARIO = """
[scenario]
name = "limits"
run_for_s = 60
[[broker]]
name = "broker-a"
"""


def test_limits_that_are_left_out_are_those_of_healthy_runs():
    assert loads(SCENARIO, "a.toml").service == ServiceLimits()
    assert loads(f"{SCENARIO}[service]\nlag_s = 60\n", "a.toml").service == ServiceLimits(lag_s=60)


def test_they_are_written_only_if_they_differ_and_read_again():
    limited = loads(f"{SCENARIO}[service]\nlate_p99_ms = 250\npaging_times = 2\n", "a.toml")

    assert "service" not in to_dict(loads(SCENARIO, "a.toml"))
    assert from_dict(to_dict(limited), "b").service == limited.service == ServiceLimits(late_p99_ms=250, paging_times=2)


@each_case(
    ("line", "message"),
    [
        ("late_p99_s = 1", 'late_p99_s: unknown key; did you mean "late_p99_ms"?'),
        ("lag_s = 0", "lag_s: expected a whole number of seconds >= 1, not 0"),
        (
            "notifications_percent = 101",
            "notifications_percent: expected a whole number of percent from 1 to 100, not 101",
        ),
        ('stalled_ms = "few"', "stalled_ms: expected a whole number of milliseconds >= 1, not 'few'"),
    ],
)
def test_a_limit_that_is_none_is_reported_in_one_line(line, message):
    with pytest.raises(SpecError) as error:
        loads(f"{SCENARIO}[service]\n{line}\n", "a.toml")
    assert str(error.value) == f"a.toml:8: service.{message}"
