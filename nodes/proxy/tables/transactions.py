"""Transactions that a proxy can end: it knows where their half messages are, for a short time and for one use.

Mirrors:
    `org.apache.rocketmq.proxy.service.transaction.TransactionDataManager`, `TransactionData`.
"""

from nodes.values import frozen


@frozen
class TransactionData:
    """Where the half message of a transaction is."""

    broker_name: str
    topic: str
    tran_state_table_offset: int
    commit_log_offset: int
    transaction_id: str
    check_timestamp_ms: int
    """When it was sent, or checked, on the clock of the proxy."""
    expire_ms: int
    """How long it is known from then on."""

    @property
    def expire_time_ms(self) -> int:
        """When it is forgotten."""
        return self.check_timestamp_ms + self.expire_ms


def _age(data: TransactionData) -> tuple[int, int, int, str]:
    return data.expire_time_ms, data.tran_state_table_offset, data.commit_log_offset, data.broker_name


class TransactionDataManager:
    """Transactions by producer group and transaction id: one may have been sent or checked several times.

    Args:
        data_max: of one transaction; the oldest makes room.
    """

    def __init__(self, data_max: int) -> None:
        self._data_max = data_max
        self._data: dict[tuple[str, str], list[TransactionData]] = {}
        self.latest_expire_time_ms = 0
        """The latest end of a transaction that a scan has found."""

    def add(self, group: str, data: TransactionData) -> None:
        """Add a transaction that was sent, or is checked."""
        known = self._data.setdefault((group, data.transaction_id), [])
        if data in known:
            return
        known.append(data)
        known.sort(key=_age)
        if len(known) > self._data_max:
            del known[0]

    def poll(self, group: str, transaction_id: str, now_ms: int) -> TransactionData | None:
        """Take the youngest data of a transaction, and forget what is too old; None: there is none."""
        key = (group, transaction_id)
        known = self._data.get(key, [])
        found = None
        while known and found is None:
            data = known.pop()
            if data.expire_time_ms >= now_ms:
                found = data
        if not known:
            self._data.pop(key, None)
        return found

    def clean_expired(self, now_ms: int) -> None:
        """Forget what is too old."""
        for key, known in list(self._data.items()):
            left = [data for data in known if data.expire_time_ms >= now_ms]
            if left:
                self._data[key] = left
                self.latest_expire_time_ms = max(self.latest_expire_time_ms, left[-1].expire_time_ms)
            else:
                del self._data[key]
