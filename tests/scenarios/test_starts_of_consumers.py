"""How consumers come up."""

import pytest

from emulator.spec.model.networks import Network
from emulator.testing import a_scenario, execute


@pytest.mark.trap(
    "X21",
    status="simplified",
    note="connections may take 3 s, not 1 s, and a start always asks before the refresh of routes does",
)
@pytest.mark.parametrize(("delay_ms", "comes_up"), [(700, True), (800, False)])
def test_a_first_request_that_takes_too_long_fails_the_start_though_the_nameserver_lives(delay_ms, comes_up):
    """It pays for the connection, too: four ways, of which three seconds are allowed for."""
    trace = execute(a_scenario(consumers=1, network=Network(delay_ms)), for_ms=60_000)

    life = [row.event for row in trace.select("lifecycle", node="c1")]
    assert ("ready" in life) is comes_up
    assert ("stopping" in life) is not comes_up
    assert trace.select("lifecycle", node="ns-1", event="killed") == []
