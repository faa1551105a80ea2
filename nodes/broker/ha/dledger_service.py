"""The HA service of a broker whose group elects its master: a message counts when a majority has it."""

from collections.abc import Callable, Mapping

import attrs

from nodes.broker.context import BrokerContext
from nodes.broker.ha.auto_switch_client import AutoSwitchHaClient
from nodes.broker.ha.auto_switch_service import AutoSwitchHaService
from nodes.broker.tables.ha.auto_switch_link import MasterHandshake
from nodes.broker.tables.ha.quorum_acks import QuorumAcks
from nodes.config import BrokerConfig
from nodes.host import Channel
from nodes.protocol.codes import ResponseCode
from nodes.protocol.model import MASTER_ID

_ACK_TIMEOUT_MS = 2_500
"""How long an append waits for a majority (`maxWaitAckTimeMs`)."""
_COMMIT_PERIOD_MS = 1_000
"""Time between two reports of what is committed to a follower that gets no messages (`EntryDispatcher#doCommit`)."""


class DLedgerHaClient(AutoSwitchHaClient):
    """A follower, which reports the end of its log as soon as it has compared that with its leader's.

    So a new leader whose followers have all messages knows it after a round trip, as after DLedger's COMPARE.
    """

    def _on_epochs(self, channel: Channel, master_handshake: MasterHandshake) -> None:
        super()._on_epochs(channel, master_handshake)
        self._report(channel)


class DLedgerHaService(AutoSwitchHaService):
    """Replicates the log of a leader, and cuts what a follower has more, as it is done in controller mode.

    DLedger pushes entries, with an index and a term each. Here the messages go over HA links, and the terms are the
    epochs of these; what is stored where, who is answered what and when are the same.

    Args:
        broker: whose log is replicated.
        on_replicated: called with topic and queue id of each message from the leader, once it may be read.
        members: how many brokers the group has.

    Mirrors:
        `org.apache.rocketmq.store.dledger.DLedgerCommitLog`.
    """

    _client_class = DLedgerHaClient

    def __init__(self, broker: BrokerContext, on_replicated: Callable[[str, int], None], members: int) -> None:
        super().__init__(broker, on_replicated)
        self.quorum = self.in_sync = QuorumAcks(self.epochs, members)
        self._is_leader = False

    def change_to_master(self, epoch: int) -> None:
        """Begin a term as leader."""
        self._is_leader = True
        super().change_to_master(epoch)

    def change_to_slave(self, epoch: int, broker_id: int) -> None:
        """Follow the leader of a term."""
        self._is_leader = False
        super().change_to_slave(epoch, broker_id)

    def on_files_deleted(self) -> None:
        """Keep all terms: DLedger has no epoch file."""

    def on_open(self, channel: Channel) -> None:
        """A follower has connected; only a leader sends its log, so one that was started again is not followed."""
        if self._is_leader:
            super().on_open(channel)
        else:
            channel.close()

    @property
    def _link_config(self) -> BrokerConfig:
        """A follower learns what is committed with the next message, or a second later."""
        return attrs.evolve(self._broker.config, ha_send_heartbeat_interval=_COMMIT_PERIOD_MS)

    @property
    def late_answer(self) -> tuple[ResponseCode, str | None]:
        """What a sender is answered whose message no majority has in time; it may be stored all the same."""
        return ResponseCode.SYSTEM_ERROR, "in-sync replicas not enough"

    @property
    def ack_timeout_ms(self) -> int:
        """How long a sender waits for a majority."""
        return _ACK_TIMEOUT_MS

    def ack_nums_to_wait_for(self, properties: Mapping[str, str]) -> int | None:  # noqa: ARG002 - WAIT counts for nothing
        """A majority, whatever the sender wants."""
        return self.quorum.majority if self._broker.broker_id == MASTER_ID else 1

    def _slave_acks(self) -> list[int]:
        return [link.link.ack_offset for link in self._links()]
