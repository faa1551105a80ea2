"""The messages of a broker on its disk: one file for each, named after where the log ended, so each names the next.

A message is on the disk before its producer has the answer, as with `SYNC_FLUSH`:
neither a kill nor a loss of power takes what was acknowledged. With the real
default, `ASYNC_FLUSH`, a loss of power takes the last half second.

Mirrors:
    `org.apache.rocketmq.store.CommitLog`, its files and `#recoverNormally`.
"""

from collections.abc import Iterable

from nodes.broker.message_store import MessageStore
from nodes.host import Disk
from nodes.protocol.model import Message
from nodes.protocol.registry import decode_body, encode_body


def write_commit_log(disk: Disk, stored: Message) -> None:
    """Keep a stored message."""
    disk.write(_file(stored.commit_log_offset), encode_body(stored))


def append_to_commit_log(disk: Disk, store: MessageStore, messages: Iterable[Message]) -> None:
    """Take over messages of another log, with the offsets that they have there, and keep them.

    Mirrors:
        `org.apache.rocketmq.store.DefaultMessageStore#appendToCommitLog`.
    """
    for message in messages:
        disk.write(_file(store.max_commit_log_offset), encode_body(message))
        store.restore(message)


def load_commit_log(disk: Disk, store: MessageStore) -> None:
    """Fill an empty store with what an earlier process has kept."""
    while (content := disk.read(_file(store.max_commit_log_offset))) is not None:
        store.restore(decode_body(Message, content))
    store.init_max_commit_log_offset = store.max_commit_log_offset


def _file(commit_log_offset: int) -> str:
    return f"commitlog/{commit_log_offset:020d}"
