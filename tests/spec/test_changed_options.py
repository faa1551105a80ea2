"""Options that an administrator changes without effect are named by `check`, and at the console."""

import pytest

from emulator.spec import loads
from emulator.spec.warnings.harmful_settings import check
from emulator.testing import ConsoleUser, a_scenario, run_at_console

SCENARIO = """
[scenario]
name = "x"
run_for_s = 60
[[nameserver]]
name = "n1"
[[broker]]
name = "ba"
[[admin]]
at_s = 10
do = "update-{of}-config {name}={value}"
"""

WITHOUT_EFFECT = {
    ("broker", "brokerHeartbeatIntervl"): "RocketMQ 5.3.3 has no option brokerHeartbeatIntervl there, and ignores it; "
    "did you mean brokerHeartbeatInterval?",
    ("broker", "mmapMeasureTimes"): "RocketMQ 5.3.3 has no option mmapMeasureTimes there, and ignores it",
    ("broker", "warmMapedFileEnable"): "RocketMQ takes warmMapedFileEnable, and it changes nothing here: ",
    ("namesrv", "brokerHeartbeatInterval"): "RocketMQ 5.3.3 has no option brokerHeartbeatInterval there",
}


@pytest.mark.parametrize(("of", "name"), WITHOUT_EFFECT)
def test_check_names_an_option_that_changes_nothing(of, name):
    (line,) = [item.line() for item in check(loads(SCENARIO.format(of=of, name=name, value=1), "x.toml"))]
    assert line.startswith("option-without-effect: update-")
    assert WITHOUT_EFFECT[of, name] in line


@pytest.mark.parametrize(("of", "name"), [("broker", "brokerPermission"), ("namesrv", "scanNotActiveBrokerInterval")])
def test_an_option_that_has_an_effect_is_not_named(of, name):
    assert check(loads(SCENARIO.format(of=of, name=name, value=6000 if of == "namesrv" else 4), "x.toml")) == ()


def test_the_console_names_it_with_the_answer_of_the_broker(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(5_000)
        lines = await me.say("update-broker-config warmMapedFileEnable=true")
        assert lines[-1].startswith("RocketMQ takes warmMapedFileEnable, and it changes nothing here: ")
        assert not any("changes nothing" in line for line in await me.say("update-broker-config brokerPermission=4"))

    run_at_console(a_scenario(), tmp_path, sitting)
