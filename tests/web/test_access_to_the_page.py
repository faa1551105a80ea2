"""The gate: own host, own origin, the token."""

import pytest

from emulator.web.gate import Gate
from emulator.web.http import Refusal

GATE = Gate(8080, "secret")


@pytest.mark.parametrize("host", [b"127.0.0.1:8080", b"localhost:8080"])
def test_the_page_may_ask_under_both_names(host):
    GATE.check_address([(b"host", host), (b"origin", b"http://" + host)])
    GATE.check_address([(b"host", host)])


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"host", b"127.0.0.1")],
        [(b"host", b"evil.example:8080")],
        [(b"host", b"127.0.0.1:8080"), (b"host", b"evil.example")],
        [(b"host", b"127.0.0.1:8080"), (b"origin", b"null")],
        [(b"host", b"127.0.0.1:8080"), (b"Origin", b"http://localhost:8080")],
    ],
)
def test_whoever_names_another_host_or_origin_is_refused(headers):
    with pytest.raises(Refusal) as refused:
        GATE.check_address(headers)
    assert refused.value.status == 403


@pytest.mark.parametrize("given", [[], [b"secret"], [b"Bearer secre"], [b"Bearer secrets"], [b"Bearer", b" secret"]])
def test_whoever_does_not_bring_the_token_is_refused(given):
    GATE.check_token([(b"authorization", b"Bearer secret")])
    with pytest.raises(Refusal) as refused:
        GATE.check_token([(b"authorization", value) for value in given[:1]])
    assert refused.value.status == 401


def test_the_token_is_in_no_representation_of_the_gate():
    assert "secret" not in repr(GATE)
