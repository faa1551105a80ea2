"""Family lock_rpc: codes 41 and 42 of `AdminBrokerProcessor`; the members' answers are given in advance."""

from conformance.executing import Adapter
from conformance.queue_locks_adapter import lock_rows
from conformance.queue_texts import queues, texts
from nodes.broker.tables.clients.queue_locks import PEER_TIMEOUT_MS, RebalanceLockManager, lock_batch, unlock_batch
from nodes.protocol.bodies import LockBatchRequestBody
from nodes.protocol.codes import ResponseCode

FAIL = "FAIL"


class LockRpc(Adapter):
    def __init__(self, total_replicas=1, lock_in_strict_mode=False, broker_id=0):
        self.broker_id = broker_id
        self.total_replicas = total_replicas
        self.strict = lock_in_strict_mode
        self.locks = RebalanceLockManager()
        self.members = {}
        self.replies = {}

    def tables(self):
        return {"locks": lock_rows(self.locks)}

    def set_members(self, addrs):
        self.members = {int(broker_id): address for broker_id, address in addrs.items()}

    def set_replies(self, replies):
        self.replies = replies

    def lock_batch_mq(self, group, client, only_this_broker, mqs):
        turn = lock_batch(
            self.locks,
            LockBatchRequestBody(group, client, queues(mqs), only_this_broker),
            now_ms=self.at_ms,
            lock_in_strict_mode=self.strict,
            total_replicas=self.total_replicas,
            broker_id=self.broker_id,
            members=self.members,
        )
        replies = [self.replies.get(address, FAIL) for address in turn.ask]
        answer = turn.answer(queues(reply) for reply in replies if reply != FAIL)
        return {
            "code": int(ResponseCode.SUCCESS),
            "lockOKMQSet": texts(answer),
            "calls": calls("lockBatchMQAsync", turn.ask, turn.request),
        }

    def unlock_batch_mq(self, group, client, only_this_broker, mqs):
        body = LockBatchRequestBody(group, client, queues(mqs), only_this_broker)
        turn = unlock_batch(self.locks, body, lock_in_strict_mode=self.strict, members=self.members)
        return {"code": int(ResponseCode.SUCCESS), "calls": calls("unlockBatchMQAsync", turn.notified, turn.request)}


def calls(name, addresses, body):
    return [
        [name, address, body.only_this_broker, PEER_TIMEOUT_MS, texts(body.mq_set)] for address in addresses
    ] or None
