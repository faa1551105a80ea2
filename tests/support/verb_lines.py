"""A line for each verb that begins a fault, at a cluster with ns-1, broker-a, broker-b and the consumer group g."""

from collections.abc import Mapping

VERB_LINES: Mapping[str, str] = {
    "cut": "cut broker-b ns-1",
    "partition": "partition isolate broker-b",
    "loss": "loss 10 broker-b ns-1",
    "tcp-loss": "tcp-loss 10 broker-b ns-1",
    "delay": "delay 5 broker-b ns-1",
    "drop": "drop HEART_BEAT to broker-b",
    "refuse": "refuse HEART_BEAT with SYSTEM_BUSY to broker-b",
    "kill": "kill broker-b",
    "stop": "stop broker-b",
    "power-off": "power-off broker-b",
    "suspend": "suspend broker-b",
    "slow-cpu": "slow-cpu broker-b 20",
    "skew": "skew broker-b 1000",
    "drift": "drift broker-b 100",
    "jump": "jump broker-b 1000",
    "slow-disk": "slow-disk broker-b 5",
    "lost-writes": "lost-writes broker-b",
    "permission": "permission broker-b 4",
    "scale": "scale g 3",
    "rebalance": "rebalance g client",
    "consume-mode": "consume-mode g pop",
    "restart": "restart broker-b",
    "upgrade": "upgrade broker-b one every 1s",
    "chaos": "chaos fixed-kill broker-b",
}
