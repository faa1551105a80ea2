"""Groups of lite pull consumers in scenario files, and what cannot be said of them."""

import pytest

from emulator.spec import SpecError, from_dict, loads, to_dict
from nodes.config import ConsumerConfig, LitePullConsumerConfig, options
from nodes.fields import FieldError
from support.mistakes import only_mistake

HEAD = """
[scenario]
name = "lite"
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
lite_pull = true
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
    return loads(HEAD + GROUP + "[consumer.options]\n" + option, "lite.toml")


def test_a_group_pulls_for_polls_where_its_table_says_so():
    (group,) = a_group().consumers
    (pushed,) = loads(HEAD + GROUP.replace("true", "false"), "lite.toml").consumers

    assert group.lite_pull
    assert group.config == LitePullConsumerConfig()
    assert not pushed.lite_pull
    assert pushed.config == ConsumerConfig()


def test_its_own_options_and_defaults_are_those_of_rocketmq():
    config = a_group(option="pollTimeoutMillis = 1000\nautoCommit = false").consumers[0].config

    assert (config.poll_timeout_millis, config.auto_commit) == (1_000, False)
    assert (config.pull_batch_size, config.broker_suspend_max_time_millis) == (10, 20_000)
    assert (config.pull_threshold_for_all, config.pull_threshold_for_queue) == (10_000, 1_000)
    assert (config.consume_max_span, config.pull_thread_nums, config.auto_commit_interval_millis) == (2_000, 20, 5_000)


def test_what_is_written_of_it_reads_back():
    scenario = a_group(option="pullBatchSize = 32\npullThreadNums = 3")

    assert to_dict(scenario)["consumer"][0]["lite_pull"] is True
    assert from_dict(to_dict(scenario)) == scenario


@pytest.mark.parametrize("option", ["consumeOrderly = true", 'messageModel = "BROADCASTING"', "pullInterval = 5"])
def test_an_option_that_only_a_push_consumer_has_is_refused_in_one_line(option):
    with pytest.raises(SpecError) as error:
        a_group(option=option)

    name = option.split()[0]
    expected = "expected its default: a lite pull consumer has no other"
    assert only_mistake(error.value) == f"lite.toml: consumer[0].options.{name}: {expected}"


def test_every_default_that_a_push_consumer_has_may_be_written_down():
    push = {field.name: field.default for field in options(ConsumerConfig).values()}
    own = {"pull_batch_size", "broker_suspend_max_time_millis", "pull_max_idle_time_ms"}

    config = LitePullConsumerConfig(**{name: value for name, value in push.items() if name not in own})
    assert config == LitePullConsumerConfig()


def test_an_auto_commit_more_often_than_every_second_is_refused():
    with pytest.raises(FieldError, match=r"autoCommitIntervalMillis: expected a whole number of milliseconds >= 1000"):
        LitePullConsumerConfig(auto_commit_interval_millis=999)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GROUP + "fail_times = 1", r"consumer\[0\]\.fail_times: expected 0: a lite pull consumer sends nothing back"),
        (SHARED, r"consumer\[0\]\.lite_pull: expected false in a process that consumes for several groups"),
        (SHARED.replace("lite_pull = true", "") + "lite_pull = true", r"consumer\[1\]\.lite_pull: expected false"),
        (GROUP.replace("true", '"yes"'), r"consumer\[0\]\.lite_pull: expected true or false"),
        (GROUP.replace("true", "false") + "[consumer.options]\nautoCommit = true", r"unknown option"),
    ],
)
def test_what_cannot_be_is_refused(text, message):
    with pytest.raises(SpecError, match=message):
        loads(HEAD + text, "lite.toml")
