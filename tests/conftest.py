"""What all tests share."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["support.kinds", "support.trap_marks"]

# How long an example takes says more of the machine than of us, and the same tests must give the same result.
settings.register_profile("rmqemu", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rmqemu")
