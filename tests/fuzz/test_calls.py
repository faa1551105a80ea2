"""Random HTTP/2 on the port of a live node that answers calls; `make fuzz` sends a million frames."""

from fuzz.calls import attack


def test_random_frames_on_a_live_node_harm_no_client_that_behaves_well():
    fuzzed = attack(1_500, "test")

    assert fuzzed.impact() == []
    assert fuzzed.frames >= 1_500
    assert fuzzed.proxy["malformed"], "some guests were sent away"
