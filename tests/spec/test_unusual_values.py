"""Values that are absurd for their unit are warned of; what the examples and the presets say is not."""

import tomllib
from pathlib import Path

import attrs
import pytest

from emulator.campaign.file import load_campaign
from emulator.spec import Preset, load, loads
from emulator.spec.reading.reference import ROLES
from emulator.spec.warnings.harmful_settings import check
from emulator.spec.warnings.unusual_values import unusual_values
from nodes.config import options
from nodes.fields import unit_of, usual_of
from support.every_case import each_case

EXAMPLES = Path(__file__).parents[2] / "examples"
SCENARIOS = [path for path in sorted(EXAMPLES.rglob("*.toml")) if "campaign" not in tomllib.loads(path.read_text())]
CAMPAIGNS = [path for path in sorted(EXAMPLES.rglob("*.toml")) if path not in SCENARIOS]
HEAD = '[scenario]\nname = "x"\nrun_for_s = 60\n'
CLUSTER = '[[broker]]\nname = "ba"\n[[broker]]\nname = "bb"\n[[topic]]\nname = "t"\n'
GROUP = '[[consumer]]\ngroup = "g"\ntopics = ["t"]\n'


def both(text):
    return HEAD + CLUSTER.replace('"\n[[b', f'"\n{text}\n[[b').replace('"\n[[t', f'"\n{text}\n[[t') + GROUP


ABSURD = {
    "a heartbeat every 5 ms": (
        both("options.brokerHeartbeatInterval = 5"),
        "ba, bb: brokerHeartbeatInterval is 5 milliseconds: from 10 ms to 1 h is usual, 1 s the default",
    ),
    "a time-out of a day": (
        HEAD + CLUSTER + GROUP + "options.mqClientApiTimeout = 86_400_000",
        "g: mqClientApiTimeout is 86400000 milliseconds, which is 24 h: from 10 ms to 1 h is usual, 3 s the default",
    ),
    "a poll of 0": (
        HEAD + CLUSTER + GROUP + "options.brokerSuspendMaxTimeMillis = 0",
        "g: brokerSuspendMaxTimeMillis is 0 milliseconds: from 10 ms to 1 h is usual, 15 s the default",
    ),
    "milliseconds for seconds": (
        HEAD + CLUSTER + "[nameserver]\ncount = 1\noptions.serverChannelMaxIdleTimeSeconds = 120_000",
        "ns-1: serverChannelMaxIdleTimeSeconds is 120000 seconds, which is 33.3333 h: from 1 s to 1 h is usual",
    ),
    "milliseconds for minutes": (
        HEAD + CLUSTER + GROUP + "options.consumeTimeout = 900_000",
        "g: consumeTimeout is 900000 minutes, which is 15000 h: from 1 min to 24 h is usual, 15 min the default",
    ),
    "a frame that takes an hour": (
        HEAD + CLUSTER + "[network]\ndelay_ms = 3_600_000",
        "network: delay_ms is 3600000 milliseconds, which is 1 h: from 0 ms to 1 min is usual, 1 ms the default",
    ),
    "a listener that takes a day": (HEAD + CLUSTER + GROUP + "consume_ms = 86_400_000", "g: consume_ms is 86400000"),
    "a restart with other options": (
        HEAD + CLUSTER + GROUP + '[[fault]]\nat_s = 1\ndo = "restart ba with {brokerHeartbeatInterval = 1}"',
        "ba: brokerHeartbeatInterval is 1 milliseconds: from 10 ms",
    ),
}


@each_case(("text", "line"), ABSURD.values(), ids=list(ABSURD))
def test_an_absurd_value_is_one_warning_with_what_is_usual(text, line):
    (found,) = check(loads(text, "x"))

    assert found.line().startswith(f"value-unusual-for-its-unit: {line}")
    assert found.line().endswith("; is another unit meant?")


@each_case("path", SCENARIOS, ids=lambda path: path.stem)
def test_no_example_is_warned_of(path):
    assert list(unusual_values(load(path, allow_code=True))) == []  # one names a function with it


@each_case("path", CAMPAIGNS, ids=lambda path: path.stem)
def test_no_variant_of_an_example_is_warned_of(path):
    assert [
        unusual_value for variant in load_campaign(path).variants for unusual_value in unusual_values(variant.scenario)
    ] == []


@pytest.mark.parametrize("release", ["4.9", "5.3.3"])
@pytest.mark.parametrize("preset", Preset)
def test_no_preset_and_no_release_is_warned_of(preset, release):
    text = HEAD + f'preset = "{preset}"\n' + '[[broker]]\nname = "ba"\n'
    released = text + f'[nameserver]\ncount = 1\noptions.release = "{release}"\n'

    assert list(unusual_values(loads(text, "x"))) == []
    assert preset is not Preset.CLASSIC or list(unusual_values(loads(released, "x"))) == []


@each_case("role", ROLES)
def test_every_time_among_the_options_has_usual_values_with_its_default(role):
    times = ("milliseconds", "seconds", "minutes")
    for name, field in options(ROLES[role]).items():
        usual = usual_of(field)
        assert (usual is not None) == (unit_of(field) in times and name != "timerMaxDelaySec"), name
        own = attrs.fields(ROLES[role])
        assert field in own
        never = name == "pullMaxIdleTimeMs" and role.endswith("pull-consumer")
        no_time = name == "sendMsgMaxTimeoutPerRequest"  # -1: none of its own
        assert usual is None or never or no_time or usual.minimum <= field.default <= usual.maximum, name
