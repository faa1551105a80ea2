"""What a `[[producer]]` of a scenario file says of its transactions."""

from typing import Any

from emulator.spec_section import Section, SpecError
from nodes.client.local_transactions import LocalTransactions, LocalTransactionState

_STATE, _CHECK = "local_transaction", "check_local_transaction"
TRANSACTION_KEYS = (_STATE, f"{_STATE}_s", f"{_STATE}_ms", _CHECK)


def read_transactions(section: Section) -> LocalTransactions | None:
    """None where its messages are ordinary ones.

    Raises:
        SpecError: a state is none, or something is said of transactions that there are not.
    """
    if _STATE not in section.values:
        for key in TRANSACTION_KEYS:
            if key in section.values:
                raise SpecError(section.at(key), f"expected {_STATE} beside it: this producer has no transactions")
        return None
    state = _state(section, _STATE)
    check_state = _state(section, _CHECK) if _CHECK in section.values else None
    return LocalTransactions(state, section.span_ms(_STATE) or 0, check_state)


def write_transactions(transactions: LocalTransactions | None) -> dict[str, Any]:
    """The keys from which `read_transactions` reads them again."""
    if transactions is None:
        return {}
    said: dict[str, Any] = {_STATE: transactions.state.value}
    if transactions.duration_ms:
        said[f"{_STATE}_ms"] = transactions.duration_ms
    if transactions.check_state is not None:
        said[_CHECK] = transactions.check_state.value
    return said


def _state(section: Section, key: str) -> LocalTransactionState:
    text = section.text(key)
    try:
        return LocalTransactionState(text)
    except ValueError:
        raise SpecError(section.at(key), f'expected one of {", ".join(LocalTransactionState)}, not "{text}"') from None
