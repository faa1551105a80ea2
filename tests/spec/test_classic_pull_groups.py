"""Groups of classic pull consumers in scenario files, and what cannot be."""

import pytest

from emulator.spec import SpecError, from_dict, loads, to_dict
from nodes.config import ConsumerConfig, PullApplication, PullConsumerConfig, options
from nodes.fields import FieldError
from support.every_case import each_case
from support.mistakes import only_mistake

HEAD = """
[scenario]
name = "classic"
run_for_s = 10
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
"""
GROUP = """
[[consumer]]
group = "g"
topics = ["orders"]
classic_pull = true
"""
SHARED = (
    GROUP
    + """
[[consumer]]
group = "h"
topics = ["orders"]
share_process_with = "g"
"""
)


def a_group(*, option=""):
    return loads(HEAD + GROUP + "[consumer.options]\n" + option, "classic.toml")


def test_an_application_pulls_the_queues_of_a_group_where_its_table_says_so():
    (group,) = a_group().consumers

    assert group.classic_pull
    assert not group.lite_pull
    assert not group.has_listener
    assert group.config == PullConsumerConfig()


def test_its_own_options_and_defaults_are_those_of_rocketmq():
    config = a_group(option='pullApplication = "queues_in_balance"\npullThreadNums = 2').consumers[0].config

    assert (config.pull_application, config.pull_thread_nums) == (PullApplication.QUEUES_IN_BALANCE, 2)
    assert (config.consumer_pull_timeout_millis, config.broker_suspend_max_time_millis) == (10_000, 20_000)
    assert (config.consumer_timeout_millis_when_suspend, config.pull_next_delay_time_millis) == (30_000, 200)


def test_what_is_written_of_it_reads_back():
    scenario = a_group(option='pullBatchSize = 10\nmessageModel = "BROADCASTING"')

    assert to_dict(scenario)["consumer"][0]["classic_pull"] is True
    assert from_dict(to_dict(scenario)) == scenario


@pytest.mark.parametrize(
    "option", ["consumeOrderly = true", "pullInterval = 5", 'consumeFromWhere = "CONSUME_FROM_FIRST_OFFSET"']
)
def test_an_option_that_it_does_not_have_is_refused_in_one_line(option):
    with pytest.raises(SpecError) as error:
        a_group(option=option)

    expected = "expected its default: a classic pull consumer has no other"
    assert only_mistake(error.value) == f"classic.toml: consumer[0].options.{option.split()[0]}: {expected}"


def test_every_default_that_a_push_consumer_has_may_be_written_down():
    push = {field.name: field.default for field in options(ConsumerConfig).values()}
    own = {"broker_suspend_max_time_millis", "pull_max_idle_time_ms"}

    config = PullConsumerConfig(**{name: value for name, value in push.items() if name not in own})
    assert config == PullConsumerConfig()


def test_a_pull_that_brokers_hold_longer_than_the_client_waits_is_refused():
    with pytest.raises(FieldError, match="consumerTimeoutMillisWhenSuspend: expected at least brokerSuspendMaxTime"):
        PullConsumerConfig(broker_suspend_max_time_millis=30_001)


@each_case(
    ("text", "message"),
    [
        (
            GROUP + "fail_times = 1",
            r"consumer\[0\]\.fail_times: expected 0: a classic pull consumer sends nothing back",
        ),
        (GROUP + "lite_pull = true", r"consumer\[0\]\.classic_pull: expected only one of lite_pull and classic_pull"),
        (GROUP + 'mode = "pop"', r"consumer\[0\]\.mode: expected pull: classic pull consumers never pop"),
        (SHARED, r"consumer\[0\]\.classic_pull: expected false in a process that consumes for several groups"),
        (GROUP + '[[statefulset]]\ngroup = "g"', r"classic_pull: expected false in a StatefulSet"),
    ],
)
def test_what_cannot_be_is_refused(text, message):
    with pytest.raises(SpecError, match=message):
        loads(HEAD + text, "classic.toml")
