"""The options of nodes: names, shipped defaults, bounds."""

import attrs
import pytest

from nodes.config import (
    AllocateStrategy,
    BrokerConfig,
    ClientConfig,
    Config,
    ConsumerConfig,
    LitePullConsumerConfig,
    NameserverConfig,
    ProducerConfig,
    PullConsumerConfig,
    option_name,
    options,
)
from nodes.config.options import MILLISECONDS, MINUTES, SECONDS
from nodes.fields import FieldError, unit_of
from support.every_case import each_case

ALL_CONFIGS = (
    *(NameserverConfig, BrokerConfig, ClientConfig),
    *(ConsumerConfig, LitePullConsumerConfig, PullConsumerConfig, ProducerConfig),
)


def test_the_first_nameserver_scan_comes_after_5_ms_and_the_next_after_5_s():
    config = NameserverConfig()

    assert (config.first_scan_delay_ms, config.scan_not_active_broker_interval) == (5, 5_000)


def test_shipped_defaults_leave_the_acting_master_off_everywhere():
    assert not NameserverConfig().support_acting_master
    assert not BrokerConfig().enable_slave_acting_master
    assert BrokerConfig().compatible_with_old_name_srv


def test_shipped_defaults_of_a_client():
    config = ConsumerConfig()

    assert config.poll_name_server_interval == config.heartbeat_broker_interval == 30_000
    assert (config.rebalance_wait_interval_ms, config.rebalance_min_interval_ms) == (20_000, 1_000)
    assert (config.broker_suspend_max_time_millis, config.consumer_timeout_millis_when_suspend) == (15_000, 30_000)
    assert config.persist_consumer_offset_interval == 5_000
    assert config.allocate_message_queue_strategy is AllocateStrategy.AVG


@pytest.mark.parametrize(
    ("field", "option"),
    [
        ("broker_heartbeat_interval", "brokerHeartbeatInterval"),
        ("un_register_broker_queue_capacity", "unRegisterBrokerQueueCapacity"),
        ("pull_time_delay_mills_when_exception", "pullTimeDelayMillsWhenException"),
    ],
)
def test_an_option_is_called_as_in_rocketmq(field, option):
    assert option_name(field) == option


@each_case("config_class", ALL_CONFIGS)
def test_every_option_carries_its_original_name_and_its_unit(config_class: type[Config]):
    known = options(config_class)

    assert len(known) == len([field for field in attrs.fields(config_class) if field.name != "other_fields"])
    for option, field in known.items():
        assert option_name(field.name).lower() == option.lower()  # one of them shouts: CK
        assert unit_of(field) in (MILLISECONDS, SECONDS, MINUTES, "")


@each_case(("period_ms", "used_ms"), [(1, 10_000), (10_000, 10_000), (30_000, 30_000), (60_001, 60_000)])
def test_the_registration_period_is_clamped_to_10_and_60_s_where_it_is_used(period_ms, used_ms):
    assert BrokerConfig(register_name_server_period=period_ms).register_period_ms == used_ms


@each_case("config_class", ALL_CONFIGS)
def test_no_option_takes_a_value_of_another_type(config_class: type[Config]):
    for option, field in options(config_class).items():
        with pytest.raises(FieldError) as caught:
            config_class(**{field.name: 1.5})
        assert caught.value.field == option


@each_case("value", [-1, True, "1000", None])
def test_a_time_out_is_a_whole_number_that_is_not_negative(value):
    with pytest.raises(FieldError) as caught:
        ClientConfig(mq_client_api_timeout=value)

    assert str(caught.value) == f"mqClientApiTimeout: expected a whole number of milliseconds >= 0, not {value!r}"


def test_a_period_of_nothing_is_refused_because_time_would_never_pass():
    with pytest.raises(FieldError, match=">= 1"):
        BrokerConfig(broker_heartbeat_interval=0)


def test_a_strategy_may_be_given_as_text_but_must_be_known():
    config = ConsumerConfig(allocate_message_queue_strategy="AVG_BY_CIRCLE")  # type: ignore[arg-type]
    assert config.allocate_message_queue_strategy is AllocateStrategy.AVG_BY_CIRCLE

    with pytest.raises(FieldError, match=r"allocateMessageQueueStrategy: expected one of AVG, .* not 'BEST'"):
        ConsumerConfig(allocate_message_queue_strategy="BEST")  # type: ignore[arg-type]
