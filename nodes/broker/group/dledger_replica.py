"""A broker whose group elects its master by DLedger: it follows, or it leads and serves once its log is committed.

Mirrors:
    `org.apache.rocketmq.broker.dledger.DLedgerRoleChangeHandler`, `org.apache.rocketmq.store.dledger.DLedgerCommitLog`.
"""

from collections.abc import Callable, Mapping
from functools import partial

from nodes.beliefs import Belief, BeliefKind, Json
from nodes.broker.context import BrokerContext
from nodes.broker.group.membership import GroupMembership
from nodes.broker.group.slave_synchronize import (
    ELECTED_FULL_SYNC_INTERVAL_MS,
    ELECTED_INITIAL_DELAY_MS,
    SlaveSynchronize,
)
from nodes.broker.ha.dledger_service import DLedgerHaService
from nodes.broker.part import Part
from nodes.broker.tables.group.member_group import ChangeSpecialService, RegisterBrokerAll
from nodes.cause import cause
from nodes.dledger.member import LogPosition, MemberRole
from nodes.dledger.server import DLedgerServer
from nodes.protocol.model import MASTER_ID
from nodes.rpc.client import RpcClient
from nodes.rpc.server import RpcServer
from nodes.values import frozen

_PORT_DISTANCE, _PORT_MAX = 30_000, 65_535
"""From the port of a broker to that of its DLedger: 10911 and 40911. In RocketMQ `dLegerPeers` has the ports."""
_LOOK_MS = 100
"""Time between two looks of a new leader whether its log is committed."""


@frozen
class ElectedRole:
    """What the last election has made of a broker."""

    is_master: bool
    master_epoch: int
    """The term."""


class DLedgerReplica(Part):
    """One broker of a group with a DLedger log.

    The group elects among its own members; a member whose log ends before those of a majority is not elected. As long
    as it follows, it has the number of its member plus one for its id.

    Args:
        broker: whose role is elected; its id is that of a slave.
        client: to the other members.
        peers: id of a member, such as `n0` -> `ip:port` of the broker.
        ha: of this broker.
        membership: changes special services, and registers.
        slave: copies metadata of the master.

    Emits:
        BROKER_ROLE whenever it changes.
    """

    def __init__(
        self,
        broker: BrokerContext,
        client: RpcClient,
        peers: Mapping[str, str],
        ha: DLedgerHaService,
        membership: GroupMembership,
        slave: SlaveSynchronize,
    ) -> None:
        self._broker = broker
        self._host = broker.host
        self._peers = peers
        self._ha = ha
        self._membership = membership
        self._slave = slave
        self._slave_id = broker.broker_id
        self._port = dledger_port(broker.config.listen_port)
        self.dledger = DLedgerServer(
            broker.host,
            client,
            f"n{broker.broker_id - 1}",
            {peer: _with_port(address, dledger_port) for peer, address in peers.items()},
            apply=lambda _: None,
            on_serving_changed=self._on_serving_changed,
            on_settled=self._on_settled,
            position=self._position,
        )
        self._server = RpcServer(broker.host)
        self._server.serve(self.dledger.handlers())
        self._led_term: int | None = None
        """The term in which it leads; None: it does not."""
        self._followed: tuple[int, str] | None = None
        """The term and the leader that it follows; None: it does not."""
        self._believed: Json = None
        broker.is_fenced = True
        membership.group.isolated = True

    @property
    def role(self) -> ElectedRole:
        """What it is now."""
        return ElectedRole(self._broker.broker_id == MASTER_ID, self.dledger.member.term)

    async def start(self) -> None:
        """Open the port, and take part in elections; before the first one the broker is not registered."""
        self._slave.schedule(
            initial_delay_ms=ELECTED_INITIAL_DELAY_MS, full_sync_interval_ms=ELECTED_FULL_SYNC_INTERVAL_MS
        )
        self._host.listen(self._port, self._server)
        self.dledger.start()

    async def stop(self) -> None:
        """Close the port."""
        self._host.close_listener(self._port)
        self._server.shutdown()

    def _position(self) -> LogPosition:
        """What an election compares: the epoch in which the last message came, and the end of the log."""
        end = self._broker.store.max_commit_log_offset
        epochs = [entry.epoch for entry in self._ha.epochs.entries if entry.start_offset <= end]
        return (epochs[-1] if epochs else 0), end

    # What the members decide

    def _on_serving_changed(self) -> None:
        self._ha.quorum.leads = self.dledger.serving
        self._ha.reput()

    def _on_settled(self) -> None:
        member = self.dledger.member
        if member.role is MemberRole.LEADER:
            if self._led_term != member.term:
                self._led_term, self._followed = member.term, None
                self._ha.change_to_master(member.term)
                self._host.start_soon(self._lead, member.term, cause.get(), name="DLegerRoleChangeHandler")
        elif member.role is MemberRole.FOLLOWER:
            if self._followed != (member.term, member.leader_id):
                self._followed = member.term, member.leader_id
                self._follow(member.term, member.leader_id)
        else:
            self._followed = None
            if self._led_term is not None:
                self._serve_as_slave()
        self._believe()

    async def _lead(self, term: int, began: int) -> None:
        """Serve as master as soon as a majority has the whole log, or if it is empty."""
        cause.set(began)
        store = self._broker.store
        while self._led_term == term and store.max_commit_log_offset:
            if self.dledger.serving and self._ha.confirm_offset == store.max_commit_log_offset:
                break
            await self._host.sleep_ms(_LOOK_MS)
        if self._led_term == term:
            self._become(MASTER_ID)

    def _follow(self, term: int, leader: str) -> None:
        self._serve_as_slave()
        self._ha.change_to_slave(term, self._slave_id)
        self._ha.update_master_address(_with_port(self._peers[leader], lambda port: port + 1))

    def _serve_as_slave(self) -> None:
        self._led_term = None
        self._become(self._slave_id)

    def _become(self, broker_id: int) -> None:
        """Serve under an id, and register."""
        group = self._membership.group
        self._broker.is_fenced = group.isolated = False
        self._broker.broker_id = broker_id
        group.become(broker_id)
        group.slave_sync_master_addr = None
        self._ha.reput()
        self._believe()
        effects = ChangeSpecialService(broker_id == MASTER_ID), RegisterBrokerAll()
        change = partial(self._membership.carry_out, effects)
        self._host.start_soon(self._change, change, cause.get(), name="DLegerRoleChangeHandler")

    async def _change(self, change: partial[object], began: int) -> None:
        cause.set(began)
        await change()  # type: ignore[misc]

    def _believe(self) -> None:
        broker, member = self._broker, self.dledger.member
        serves_as = "master" if broker.broker_id == MASTER_ID else "slave"
        value = {
            "replica": self._slave_id,
            "serves_as": None if broker.is_fenced else serves_as,
            "master": int(member.leader_id[1:]) + 1 if member.leader_id else None,
            "epoch": member.term,
        }
        if value != self._believed:
            self._believed = value
            self._host.record(Belief(BeliefKind.BROKER_ROLE, broker.broker_name, value))


def dledger_port(listen_port: int) -> int:
    """The port of the DLedger of a broker: 30,000 above its own, or below it."""
    above = listen_port + _PORT_DISTANCE
    return above if above <= _PORT_MAX else listen_port - _PORT_DISTANCE


def _with_port(address: str, port_of: Callable[[int], int]) -> str:
    """The address of another port of a broker."""
    ip, _, port = address.rpartition(":")
    return f"{ip}:{port_of(int(port))}"
