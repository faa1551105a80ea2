"""Secrets: what stands for them, where their values come from, and that no form of a value shows them."""

import copy
import json
import pickle
import re

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.spec import SpecError, from_dict, loads, to_dict
from emulator.spec.reading.reference import ROLES, options_of
from emulator.spec.reading.secrets import marks_of_references, resolved, secrets_of, stood_in, with_stand_ins
from emulator.spec.warnings.harmful_settings import check
from faults.catalogue import fault_of
from nodes.config import ClientConfig, ConsumerConfig, ProducerConfig, option_name
from nodes.config.accounts import PlainAccessConfig
from nodes.secret import MASK, SECRET_OPTIONS, Secret, is_secret, masked
from support.every_case import each_case

CANARY = "canary-5ea1"
SCENARIO = """
[scenario]
name = "signed"
run_for_s = 20
[[broker]]
name = "broker-a"
options = {{ aclEnable = true, knowsPlainAcl = true }}
[[topic]]
name = "orders"
[[producer]]
name = "till"
group = "shop"
topic = "orders"
options = {{ accessKey = "rocketmq-shop", secretKey = {client} }}
[[account]]
access_key = "rocketmq-shop"
secret_key = {account}
admin = true
[[fault]]
do = "restart till with {{secretKey = {typed}}}"
at_s = 5
"""


def scenario(account=f'"{CANARY}"', client=f'"{CANARY}"', typed=CANARY):
    return loads(SCENARIO.format(account=account, client=client, typed=typed), "signed.toml")


def written(item):
    """What is written for the account, the client and the restart."""
    tables = to_dict(item)
    options = (tables["producer"][0]["options"], tables["fault"][0]["options"])
    return [tables["account"][0]["secret_key"], *(option["secretKey"] for option in options)]


@each_case(
    ("value", "known", "plain"),
    [
        (CANARY, True, MASK),
        ("", True, ""),
        ("***", False, "***"),
        ("***2", False, "***2"),
        ("env:SHOP_KEY", False, {"env": "SHOP_KEY"}),
        ("file:/run/key", False, {"file": "/run/key"}),
        ({"env": "SHOP_KEY"}, False, {"env": "SHOP_KEY"}),
        ({"file": "key"}, False, {"file": "key"}),
    ],
)
def test_a_value_is_a_secret_a_reference_or_a_mark(value, known, plain):
    secret = Secret.of(value)

    assert (secret.is_known, secret.plain()) == (known, plain)
    assert Secret.of(secret.plain()).plain() == plain


@each_case("value", [7, None, [CANARY], {}, {"env": 7}, {"env": ""}, {"env": "A", "file": "B"}, {"x": "A"}])
def test_what_is_no_secret_is_refused_without_being_shown(value):
    assert Secret.of(value) is value
    with pytest.raises(ValueError, match="secretKey: expected a text, or ") as refused:
        ProducerConfig(secret_key=value)
    assert CANARY not in str(refused.value)


FORMS = {
    "str": str,
    "repr": repr,
    "format": "{}".format,
    "attrs.asdict": lambda item: repr(attrs.asdict(item)) if attrs.has(type(item)) else "",
    "copy": lambda item: repr(copy.deepcopy(item)),
    "pickle": lambda item: repr(pickle.loads(pickle.dumps(item))),
    "percent": lambda item: "%r %s" % (item, item),  # noqa: UP031 - one of the forms
}


@each_case("form", FORMS.values(), ids=list(FORMS))
def test_no_form_of_a_value_shows_its_secret(form):
    account = PlainAccessConfig(access_key="rocketmq-shop", secret_key=CANARY)
    config = ConsumerConfig(access_key="rocketmq-shop", secret_key=CANARY)
    fault = fault_of(f"restart till with {{secretKey = {CANARY}}}")

    for value in (Secret(CANARY), account, config, fault, scenario()):
        assert CANARY not in form(value)
    assert CANARY not in fault.describe()


def test_json_refuses_a_secret():
    with pytest.raises(TypeError, match="not JSON serializable"):
        json.dumps({"key": Secret(CANARY)})


def test_the_names_of_secrets_are_those_of_all_options_and_keys_that_hold_one():
    with_secret = {
        field.name
        for kind in (PlainAccessConfig, ClientConfig, ConsumerConfig, ProducerConfig)
        for field in attrs.fields(kind)
        if is_secret(field)
    }
    assert {name for item in with_secret for name in (item, option_name(item))} == {*SECRET_OPTIONS}
    suspicious = re.compile("secret|password|token|credential", re.IGNORECASE)
    options = dict.fromkeys(item.name for role in ROLES for item in options_of(role) if suspicious.search(item.name))
    # The first names an account, which holds the secret.
    assert list(options) == ["innerClientAuthenticationCredentials", "secretKey"]


VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\"'{},;\\*"), min_size=3)
LINES = st.sampled_from(
    [
        "restart till with {{secretKey = {}}}",
        "restart till with {{secretKey={}, accessKey = a-shop}}",
        "restart till with {{accessKey = a-shop, secret_key = '{}'}}",
        'restart till with {{secretKey = "{}"',
        "restart till secretKey {}",
        "restart till with {{secretKey = a,{}",
        "{{'secretKey': '{}'}}",
        "secretKey: {}",
    ]
)


@given(VALUES, LINES)
def test_what_somebody_types_is_shown_without_its_secret(value, line):
    value = f"q{value}q"

    assert value not in masked(line.format(value))
    assert masked(masked(line.format(value))) == masked(line.format(value))


def test_a_reference_that_somebody_types_is_shown():
    line = "restart till with {secretKey = env:SHOP_KEY}"

    assert masked(line) == line
    assert masked("cut broker-a consumer-1") == "cut broker-a consumer-1"


MARKS = {
    "one value": ((f'"{CANARY}"', f'"{CANARY}"', CANARY), ["***", "***", "***"]),
    "two values": ((f'"{CANARY}"', '"another"', CANARY), ["***", "***2", "***"]),
    "three values": ((f'"{CANARY}"', '"another"', "a-third"), ["***", "***2", "***3"]),
    "a value next to marks": (('"***"', '"another"', "***3"), ["***", "***2", "***3"]),
    "references": (('{ env = "A" }', '{ file = "B" }', "env:A"), [{"env": "A"}, {"file": "B"}, {"env": "A"}]),
}


@pytest.mark.parametrize(("given_as", "expected"), MARKS.values(), ids=list(MARKS))
def test_secrets_with_one_value_have_one_mark(given_as, expected):
    item = scenario(*given_as)

    assert written(item) == expected
    assert to_dict(from_dict(to_dict(item))) == to_dict(item)


def values_of(item):
    return [secret.reveal() for _, secret in secrets_of(item)]


def test_stand_ins_are_equal_where_the_secrets_are(monkeypatch, tmp_path):
    monkeypatch.setenv("A", CANARY)
    (tmp_path / "key").write_text(f"{CANARY}\n")
    item = resolved(scenario('{ env = "A" }', f'{{ file = "{tmp_path / "key"}" }}', "another"))
    assert values_of(item) == [CANARY, CANARY, "another"]
    again = with_stand_ins(from_dict(to_dict(item)), marks_of_references(item))
    first, second, third = values_of(again)

    assert first == second != third
    assert CANARY not in (first, third)
    assert stood_in(item) == again
    assert to_dict(again) == to_dict(item)


HOW = 'give it as { env = "NAME" } or { file = "PATH" }'


def test_what_is_missing_is_reported_with_its_key_and_all_at_once(monkeypatch):
    monkeypatch.delenv("A", raising=False)
    with pytest.raises(SpecError) as missing:
        resolved(scenario('{ env = "A" }', '{ file = "/no/key" }', "***"))

    assert missing.value.lines == (
        "account[0].secret_key: a secret is missing: the environment variable A is not set",
        "producer[0].options.secretKey: a secret is missing: /no/key cannot be read: No such file or directory",
        f"fault[0].options.secretKey: a secret is missing: it was masked as *** when this was written: {HOW}",
    )


@each_case(
    ("account", "client", "refused"),
    [
        (f'"{CANARY}"', f'"{CANARY}"', False),
        (f'"{CANARY}"', '"another"', True),
        ('{ env = "A" }', f'"{CANARY}"', False),
        (f'"{CANARY}"', '{ env = "A" }', False),
        ('"***"', '"***2"', False),
    ],
)
def test_a_secret_that_is_not_known_yet_is_no_reason_for_a_warning(account, client, refused):
    assert ("Check signature failed" in repr(check(scenario(account, client)))) is refused


def test_the_history_of_the_prompt_has_no_secrets(monkeypatch, tmp_path):
    from emulator.console.prompt import _history

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    _history().store_string(f"restart till with {{secretKey = {CANARY}}}")

    assert (tmp_path / "rmqemu" / "history").read_text().endswith("+restart till with {secretKey = ***}\n")
