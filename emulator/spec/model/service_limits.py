"""Service limits: from which amounts on a run counts as degraded, or would page somebody."""

import attrs

from nodes.fields import whole


@attrs.frozen
class ServiceLimits:
    """Limits of the service verdict: above one the service is degraded; `paging_times` above one it would page.

    The defaults are what healthy runs of RocketMQ as shipped do not exceed.
    """

    paging_times: int = whole(3, unit="times", minimum=1)
    """How many times above its limit a symptom would page somebody."""
    lag_s: int = whole(10, unit="seconds", minimum=1)
    """Consumer lag that lasts so long, in seconds of arrivals: two commit periods, which
    `mqadmin consumerProgress` shows of a healthy group now and then."""
    lag_messages: int = whole(20, unit="messages", minimum=0)
    """Fewer messages of lag are no symptom, however rarely others arrive."""
    late_p99_ms: int = whole(5_000, unit="milliseconds", minimum=1)
    """Time from store to consumption of the slowest hundredth of the messages."""
    delivery_late_ms: int = whole(5_000, unit="milliseconds", minimum=1)
    """Time from the instant at which a delayed message was due to its delivery."""
    failed_sends_per_mille: int = whole(10, unit="per mille", minimum=1)
    """Attempts to send that were refused or not answered."""
    busy_ms: int = whole(5_000, unit="milliseconds", minimum=1)
    """Time in which a node refuses requests because it is busy, and time for which a request waits for its thread."""
    denied_ms: int = whole(10_000, unit="milliseconds", minimum=1)
    """Time in which a broker denies a client the same request by its users and permissions."""
    failed_start_ms: int = whole(10_000, unit="milliseconds", minimum=1)
    """Time from a failed start of a node until it is ready."""
    no_proxy_ms: int = whole(10_000, unit="milliseconds", minimum=1)
    """Time in which a client of RocketMQ 5 can connect with no proxy."""
    unwritable_ms: int = whole(1_000, unit="milliseconds", minimum=1)
    """Time in which no nameserver lists a queue of a topic that takes messages."""
    stalled_ms: int = whole(30_000, unit="milliseconds", minimum=1)
    """Pause of a queue with a backlog: a client learns of a change by its polls within this time."""
    listener_failures_per_mille: int = whole(10, unit="per mille", minimum=1)
    """Failures of listeners, of the messages that their group consumed."""
    stale_route_ms: int = whole(31_000, unit="milliseconds", minimum=1)
    """Time with a route that no nameserver gives: clients poll their routes every 30 s."""
    given_up_messages: int = whole(1, unit="messages", minimum=1)
    """From so many messages on, what a group will not get is a symptom: dead letters, discards, expiry, resets."""
    again_per_mille: int = whole(10, unit="per mille", minimum=1)
    """Messages consumed again, of those that the group consumed."""
    again_messages: int = whole(20, unit="messages", minimum=0)
    """Fewer messages consumed again are no symptom: a rebalance lets some be consumed again."""
    notifications_per_s: int = whole(1_000, unit="per second", minimum=1)
    """Fewer notifications of changed members in the busiest second are no symptom."""
    notifications_percent: int = whole(20, unit="percent", minimum=1, maximum=100)
    """Share of these notifications of all requests."""
    balance_times: int = whole(2, unit="times", minimum=1)
    """How many times the queues of the least busy member the busiest one has."""
