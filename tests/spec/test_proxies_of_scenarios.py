"""Proxies and clients of RocketMQ 5 in scenario files: what is taken, what is refused."""

import pytest

from emulator.spec import loads
from emulator.spec.reading.file import from_dict, to_dict
from emulator.spec.reading.secrets import marked, resolved
from emulator.spec.tables.mistakes import SpecError
from nodes.config.client5 import Producer5Config, PushConsumer5Config, SimpleConsumer5Config
from support.every_case import each_case

HEAD = '[scenario]\nname = "p"\nrun_for_s = 60\n[[broker]]\nname = "broker-a"\n[[topic]]\nname = "orders"\n'
PROXIES = '[[proxy]]\nname = "proxy-1"\n[[proxy]]\nname = "proxy-2"\n'
PUSH = '[[consumer]]\ngroup = "g"\ntopics = ["orders"]\nmode = "push5"\n'
SIMPLE = PUSH.replace("push5", "simple")
PRODUCER = '[[producer]]\ngroup = "pg"\ntopic = "orders"\nendpoints = ["proxy-2"]\n'


def test_clients_of_rocketmq_5_have_options_of_their_own() -> None:
    scenario = loads(
        HEAD
        + PROXIES
        + PUSH
        + "options = { maxCacheMessageCount = 7 }\n"
        + SIMPLE.replace('"g"', '"h"')
        + "options = { awaitDuration = 5_000 }\n"
        + PRODUCER,
        "p",
    )
    assert [spec.name for spec in scenario.proxies] == ["proxy-1", "proxy-2"]
    assert scenario.consumers[0].config5 == PushConsumer5Config(max_cache_message_count=7)
    assert scenario.consumers[1].config5 == SimpleConsumer5Config(await_duration=5_000)
    assert scenario.producers[0].config5 == Producer5Config()
    assert from_dict(to_dict(scenario)) == scenario


@each_case(
    ("text", "problem"),
    [
        (PUSH, "mode: expected a [[proxy]] in the scenario"),
        (PRODUCER, "endpoints: expected a [[proxy]] in the scenario"),
        (PROXIES + PUSH + 'endpoints = ["proxy-3"]\n', 'unknown proxy "proxy-3"'),
        (PROXIES + PUSH.replace("push5", "pull") + 'endpoints = ["proxy-1"]\n', 'expected mode = "push5" or "simple"'),
        (PROXIES + PUSH.replace("push5", "pull") + "orderly = true\n", 'expected mode = "push5" or "simple"'),
        (PROXIES + PUSH + "one_address = true\n", "one_address: expected none with mode = push5"),
        (PROXIES + PUSH + "lite_pull = true\n", "lite_pull: expected none with mode = push5"),
        (PROXIES + PUSH + "classic_pull = true\n", "classic_pull: expected none with mode = push5"),
        (PROXIES + PUSH + "options = { consumeTimeout = 1 }\n", "consumeTimeout: unknown option"),
        (PROXIES + PRODUCER + "delay_level = 3\n", "delay_level: expected timer_s with endpoints"),
        (PROXIES + PRODUCER + 'select = "random"\n', "select: expected none with endpoints"),
        (PROXIES + PRODUCER + "fifo = true\n", "fifo: expected keys with it"),
        (PROXIES + '[[producer]]\ngroup = "pg"\ntopic = "orders"\nfifo = true\n', "fifo: expected endpoints with it"),
        (
            PROXIES + PUSH + 'options = { accessKey = "rocketmq-shop" }\n',
            "options.secretKey: missing; expected both keys",
        ),
        (PROXIES + PRODUCER + 'options = { secretKey = "s" }\n', "options.accessKey: missing; expected both keys"),
        (
            '[[proxy]]\nname = "proxy-1"\noptions = { innerClientAuthenticationCredentials = "nobody" }\n',
            "proxy[0].options.innerClientAuthenticationCredentials: expected the access_key of an [[account]]",
        ),
        (
            '[[proxy]]\nname = "proxy-1"\noptions = { authenticationMetadataProvider = "Local" }\n',
            "expected org.apache.rocketmq.proxy.auth.ProxyAuthenticationMetadataProvider, or empty",
        ),
        ('[[proxy]]\nname = "broker-a"\n', "expected a name of its own"),
        ('[[proxy]]\nname = "proxy-1"\noptions = { grpcServerPort = 0 }\n', "grpcServerPort"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(SpecError) as refused:
        loads(HEAD + text, "p")
    assert problem in str(refused.value)


def test_secrets_of_clients_of_rocketmq_5_are_masked_and_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_SHOP", "canary-of-shop")
    keys = 'options = { accessKey = "rocketmq-shop", secretKey = %s }\n'
    text = HEAD + PROXIES + PUSH + keys % '"canary-of-billing"' + PRODUCER + keys % '{ env = "KEY_OF_SHOP" }'
    scenario = loads(text, "p")
    assert "canary" not in str(to_dict(marked(scenario)))
    config = resolved(scenario).producers[0].config5
    assert config is not None
    assert config.secret_key.reveal() == "canary-of-shop"
