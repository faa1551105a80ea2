"""A strategy by the name and the parameters that a request brings."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.allocation.strategies import (
    UnknownStrategyError,
    strategy_name,
    strategy_named,
    strategy_of,
    strategy_parameters,
)
from nodes.allocation.strategy import AllocationError
from nodes.config import NOT_INSIDE, STATEFUL, AllocateStrategy, ConsumerConfig
from nodes.config.user_functions import FunctionKind
from nodes.protocol.assigning import StrategyParameters
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_body, encode_body
from support.every_case import each_case
from support.own_code import OWN, OWN_CODE

QUEUES = [MessageQueue("t", "r1@b", queue_id) for queue_id in range(8)]
CIDS = ["r1@a", "r1@b", "r1@c"]
PARAMETERS = {
    "message_queue_list": "t@r1@b@0, t@r1@b@1",
    "consumeridcs": "r1",
    "machine_rooms": "one=r1@",
    "virtual_node_cnt": 3,
}

BY_NAME = [each for each in AllocateStrategy if each not in (*STATEFUL, AllocateStrategy.ORDINAL)]

configs = st.builds(
    ConsumerConfig,
    allocate_message_queue_strategy=st.sampled_from(BY_NAME),
    inner_allocate_strategy=st.sampled_from([each for each in AllocateStrategy if each not in NOT_INSIDE]),
    hash_function=st.none() | st.just(OWN + "last_digits"),
    **{name: st.just(value) for name, value in PARAMETERS.items()},
)


@given(configs)
def test_who_gets_name_and_parameters_allocates_as_the_member_would(config):
    OWN_CODE.find(FunctionKind.HASH_FUNCTION, OWN + "last_digits")
    travelled = decode_body(StrategyParameters, encode_body(strategy_parameters(config)))

    named = strategy_named(strategy_name(config), travelled)

    assert [named("g", cid, QUEUES, CIDS) for cid in CIDS] == [
        strategy_of(config)("g", cid, QUEUES, CIDS) for cid in CIDS
    ]
    assert named is strategy_of(config)


def test_shipped_parameters_are_those_of_shipped_consumers():
    assert strategy_parameters(ConsumerConfig()) == StrategyParameters()


def test_a_function_of_the_users_own_is_found_by_name_if_a_scenario_names_it():
    config = ConsumerConfig(allocate_message_queue_strategy=OWN + "turned")
    OWN_CODE.find(FunctionKind.STRATEGY, OWN + "turned")

    assert strategy_named(strategy_name(config), strategy_parameters(config)) == strategy_of(config)


@each_case(
    ("name", "parameters"),
    [
        ("BEST", {}),
        ("STICKY", {}),
        ("PR2169", {}),
        ("MACHINE_ROOM_NEARBY-STICKY", {"inner": "STICKY"}),
        ("MACHINE_ROOM_NEARBY-x", {"inner": "x"}),
        ("CONFIG", {"message_queue_list": "t@b"}),
        ("CONFIG", {"message_queue_list": "t"}),
        ("CONSISTENT_HASH", {"virtual_node_cnt": -1}),
        ("CONSISTENT_HASH", {"virtual_node_cnt": 2**31 - 1}),
        # What a request names is never imported.
        ("CONSISTENT_HASH", {"hash_function": "antigravity:f"}),
        ("antigravity:geohash", {}),
    ],
)
def test_what_no_one_can_carry_out_is_refused(name, parameters):
    with pytest.raises(UnknownStrategyError):
        strategy_named(name, attrs.evolve(StrategyParameters(), **parameters))


@pytest.mark.parametrize("strategy", STATEFUL)
def test_a_client_with_a_strategy_that_needs_a_memory_refuses(strategy):
    config = ConsumerConfig(allocate_message_queue_strategy=strategy)

    assert strategy_name(config) == strategy
    with pytest.raises(AllocationError, match=f"{strategy} is not supported by clients"):
        strategy_of(config)("g", "r1@a", QUEUES, CIDS)
