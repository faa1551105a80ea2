"""Symptoms among what is measured and not judged: load, lag, churn, queue balance, routes."""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from emulator.analysis.findings.context import Context
from emulator.analysis.findings.impact import IMPACTS, impact_on
from emulator.analysis.findings.questions import (
    Words,
    about_group,
    about_node,
    about_queue,
    about_sends,
    about_topic,
    inside,
    instant,
)
from emulator.analysis.findings.symptom import Symptom, SymptomKind
from emulator.analysis.findings.table import Findings
from emulator.analysis.findings.words import count
from emulator.analysis.inputs.applications import of_applications
from emulator.analysis.inputs.listener_failures import ListenerFailures
from emulator.analysis.measures.denied_requests import DENIED, DeniedRequests
from emulator.analysis.measures.failed_starts import FAILED_STARTS
from emulator.analysis.measures.lag import LAG_SERIES, LATENCIES
from emulator.analysis.measures.lost_topics import LOST_TOPICS
from emulator.analysis.measures.measured import DUPLICATES, LISTENER_FAILURES
from emulator.analysis.measures.queue_balance import IDLE, QUEUE_BALANCE
from emulator.analysis.measures.rebalances import REBALANCES, RebalanceCost
from emulator.analysis.measures.stale_routes import PROXY_CACHE_MS, STALE_ROUTES, StaleRoute
from emulator.analysis.measures.traffic import ATTEMPTS, REQUESTS, STORMS, Storm
from emulator.analysis.measures.without_proxy import WITHOUT_PROXY
from emulator.analysis.measures.writability import UNWRITABLE
from nodes.beliefs import BeliefKind
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import RETRY_TOPIC_PREFIX
from nodes.protocol.names import is_system_topic
from nodes.units import NS_PER_MS, NS_PER_S

_ALL_TOPICS = ""


def measured_symptoms(found: Findings, context: Context) -> Iterator[Symptom]:
    """All of them, also those below the limits of healthy runs.

    Args:
        found: in the run.
        context: of the run.
    """
    every = (
        *(_lost_topics, _storms, _denied, _failed_starts, _without_proxy, _unwritable, _lags, _latencies),
        *(_failed_sends, _failing, _again, _churn, _spread, _idle, _stale_routes, _fan_out),
    )
    for symptoms in every:
        yield from symptoms(found, context)


def _storms(found: Findings, _context: Context) -> Iterator[Symptom]:
    subject = attrgetter("request", "answer", "server")
    for (request, answer, server), same in groupby(sorted(found.of(STORMS), key=subject), key=subject):
        storms = list(same)
        clients = list(dict.fromkeys(storm.client for storm in storms))
        exchanges, start_ns = sum(storm.exchanges for storm in storms), min(storm.start_ns for storm in storms)
        lasted_s = (max(storm.end_ns for storm in storms) - start_ns) / NS_PER_S
        often = f"{_each(storms, clients)}, healthy is {storms[0].healthy_per_s:g}"
        text = (
            f"{_listed(clients)} asked {server} {exchanges:,} times in {lasted_s:.0f} s ({often}), "
            f"from {start_ns / NS_PER_S:.0f} s on: {request} answered {answer}"
        )
        severity = sum(storm.per_s / storm.healthy_per_s for storm in storms)
        question = ("storm", "of", clients[0], "at", instant(start_ns + NS_PER_S))
        yield Symptom(SymptomKind.STORM, severity, start_ns, text, f"{server} {request}", question)


def _denied(found: Findings, context: Context) -> Iterator[Symptom]:
    """One symptom for each user, or for each client without one; what it is denied longest comes first."""
    for user, same in groupby(sorted(found.of(DENIED), key=_denied_user), key=_denied_user):
        denials = sorted(same, key=lambda item: (item.start_ns - item.end_ns, item.start_ns))
        longest = denials[0]
        lasted_ms = (longest.end_ns - longest.start_ns) / NS_PER_MS
        first_s, last_s = min(item.start_ns for item in denials), max(item.end_ns for item in denials)
        refused = list(dict.fromkeys(_denied_in_words(item, context) for item in denials))
        requests = count(sum(item.denied for item in denials), "request")
        more = f" and {len(refused) - _DENIALS_MAX} more" if len(refused) > _DENIALS_MAX else ""
        text = (
            f"{user} was denied {requests} from {first_s / NS_PER_S:.1f} s to {last_s / NS_PER_S:.1f} s: "
            f"{', '.join(refused[:_DENIALS_MAX])}{more}; {longest.reason}"
        )
        severity = lasted_ms / context.limits.denied_ms
        question = (BeliefKind.DENIED.value, longest.subject, "of", longest.node, "at", instant(longest.start_ns))
        yield Symptom(SymptomKind.DENIED, severity, longest.start_ns, text, longest.user or longest.client, question)


def _denied_user(denials: DeniedRequests) -> str:
    return denials.user or f"a client without a user at {denials.client}"


def _denied_in_words(denials: DeniedRequests, context: Context) -> str:
    """`PULL_MESSAGE (Sub of Group:billing) of consumer-1 at broker-a`."""
    of = f"{' or '.join(denials.actions)} of {denials.resource}" if denials.actions else denials.resource
    client = context.names.get(denials.client, denials.client)
    return f"{denials.request}{f' ({of})' if of else ''} of {client} at {denials.node}"


_DENIALS_MAX = 2
"""Requests that a sentence names."""


def _failed_starts(found: Findings, context: Context) -> Iterator[Symptom]:
    for item in found.of(FAILED_STARTS):
        lasted_s = (item.end_ns - item.start_ns) / NS_PER_S
        until = "has not started since" if item.censored else f"started {lasted_s:.1f} s later"
        tried = "" if item.attempts == 1 else f" {item.attempts} times"
        text = (
            f"{item.node} could not start{tried} from {item.start_ns / NS_PER_S:.1f} s on, and {until}: {item.reason}"
        )
        severity = lasted_s * 1_000 / context.limits.failed_start_ms
        question = about_node(item.node, instant(item.start_ns))
        yield Symptom(SymptomKind.NOT_STARTED, severity, item.start_ns, text, item.node, question)


def _without_proxy(found: Findings, context: Context) -> Iterator[Symptom]:
    """One symptom for the same endpoints."""
    endpoints = attrgetter("endpoints")
    for _, same in groupby(sorted(found.of(WITHOUT_PROXY), key=endpoints), key=endpoints):
        spans = list(same)
        longest = max(spans, key=lambda item: item.end_ns - item.start_ns)
        lasted_s = (longest.end_ns - longest.start_ns) / NS_PER_S
        proxies = [context.names.get(item.rpartition(":")[0], item) for item in longest.endpoints.split(";")]
        text = (
            f"{_listed(list(dict.fromkeys(span.node for span in spans)))} could not connect with "
            f"{' or '.join(proxies)}; {longest.node} for {lasted_s:.1f} s from {longest.start_ns / NS_PER_S:.1f} s on"
        )
        severity = lasted_s * 1_000 / context.limits.no_proxy_ms
        question = (BeliefKind.PROXY.value, longest.endpoints, "of", longest.node, "at", instant(longest.start_ns))
        yield Symptom(SymptomKind.WITHOUT_PROXY, severity, longest.start_ns, text, longest.endpoints, question)


def _each(storms: list[Storm], clients: list[str]) -> str:
    per_s = sum(storm.per_s for storm in storms) / len(storms)
    return f"{per_s:,.0f} a second" if len(clients) == 1 else f"{per_s:,.0f} a second each"


def _lost_topics(found: Findings, context: Context) -> Iterator[Symptom]:
    for item in found.of(LOST_TOPICS):
        text = (
            f"{item.topic} was lost at {item.new_master}, which became master of {item.broker_name} at "
            f"{item.start_ns / NS_PER_S:.1f} s without it; nameservers list it since {item.created_ns / NS_PER_S:.1f} s"
        )
        question = about_topic(item.topic, instant(item.start_ns))
        severity = 2.0 * context.limits.paging_times
        yield Symptom(SymptomKind.TOPIC_LOST, severity, item.start_ns, text, item.topic, question)


def _unwritable(found: Findings, context: Context) -> Iterator[Symptom]:
    for topic, rows in groupby(found.of(UNWRITABLE), key=attrgetter("topic")):
        if is_system_topic(topic):  # such as that of traces: no message of an application waits for it
            continue
        spans = list(rows)
        lasted_s = sum(span.end_ns - span.start_ns for span in spans) / NS_PER_S
        text = f"{topic} had no writable queue for {lasted_s:.1f} s from {spans[0].start_ns / NS_PER_S:.1f} s on"
        severity = lasted_s * 1_000 / context.limits.unwritable_ms
        question = about_topic(topic, inside(spans[0]))
        yield Symptom(SymptomKind.UNWRITABLE, severity, spans[0].start_ns, text, topic, question)


def _lags(found: Findings, context: Context) -> Iterator[Symptom]:
    limits = context.limits
    arrived = Counter[tuple[str, str]]()
    for group, topic, messages in _arrived(found):
        arrived[group, topic] += messages
        arrived[group, _ALL_TOPICS] += messages
    for item in of_applications(found.of(LAG_SERIES)):
        lasting, since_s = item.lasting(limits.lag_s)
        # What is to be retried is measured by all that arrives for the group: next to nothing arrives in a retry topic.
        is_retry = item.topic.startswith(RETRY_TOPIC_PREFIX)
        per_s = arrived[item.group, _ALL_TOPICS if is_retry else item.topic] * NS_PER_S / context.end_ns
        behind_s = lasting / per_s if per_s and lasting >= limits.lag_messages else 0.0
        text = (
            f"{item.group} was at least {lasting:,} messages of {item.topic} behind for {limits.lag_s} s "
            f"from {since_s} s on: as many as arrive in {behind_s:.0f} s"
        )
        question = ("lag", item.group, "at", instant((2 * since_s + limits.lag_s) * NS_PER_S // 2))
        subject = f"{item.group} {item.topic}"
        yield Symptom(SymptomKind.LAG, behind_s / limits.lag_s, since_s * NS_PER_S, text, subject, question)


def _arrived(found: Findings) -> Iterator[tuple[str, str, int]]:
    """Group, topic, and messages that the group has consumed, or that wait when the run ends."""
    yield from ((item.group, item.topic, item.messages) for item in found.of(LATENCIES))
    yield from ((item.group, item.topic, item.per_s[-1]) for item in found.of(LAG_SERIES))


def _latencies(found: Findings, context: Context) -> Iterator[Symptom]:
    for item in of_applications(found.of(LATENCIES)):
        text = (
            f"a message of {item.topic}, stored at {item.slowest_ns / NS_PER_S:.1f} s, took "
            f"{item.max_ms / 1_000:.1f} s to {item.group}; p99 {item.p99_ms / 1_000:.1f} s"
        )
        severity = item.p99_ms / context.limits.late_p99_ms
        question = ("lag", item.group, "at", instant(round(item.slowest_ns + round(item.max_ms) * 500_000, -8)))
        subject = f"{item.group} {item.topic}"
        yield Symptom(SymptomKind.LATENCY, severity, item.slowest_ns, text, subject, question)


def _failed_sends(found: Findings, context: Context) -> Iterator[Symptom]:
    for item in found.of(ATTEMPTS):
        attempts = item.acknowledged + item.failed
        share_pct = 100 * item.failed / attempts
        text = (
            f"{item.failed:,} of {attempts:,} attempts of {item.producer} to send failed "
            f"({item.refused:,} refused, {item.unanswered:,} unanswered), most of them at {item.max_at_s} s"
        )
        yield Symptom(
            SymptomKind.FAILED_SENDS,
            10 * share_pct / context.limits.failed_sends_per_mille,
            max(0, item.max_at_s) * NS_PER_S,
            text,
            item.producer,
            about_sends(item.producer),
        )


def _failing(found: Findings, context: Context) -> Iterator[Symptom]:
    """One symptom for each group; the message with which its listener failed most often is named."""
    group_of = attrgetter("queue.group")
    for group, same in groupby(sorted(found.of(LISTENER_FAILURES), key=group_of), key=group_of):
        of_queues = list(same)
        worst = max(of_queues, key=lambda item: (item.times, not _is_retried(item), item.until_ns - item.since_ns))
        failures, start_ns = sum(item.failures for item in of_queues), min(item.start_ns for item in of_queues)
        until_s = max(item.end_ns for item in of_queues) / NS_PER_S
        text = (
            f"the listener of {group} failed {count(failures, 'time')} from {start_ns / NS_PER_S:.1f} s to "
            f"{until_s:.1f} s: {_failed_with(worst, of_queues)}"
        )
        messages = sum(item.messages for item in found.of(LATENCIES) if item.group == group)
        again_ms = (worst.until_ns - worst.since_ns) / NS_PER_MS
        severity = max(
            1_000 * failures / max(1, messages) / context.limits.listener_failures_per_mille,
            again_ms / context.limits.stalled_ms,
        )
        question = ("message", f"{worst.queue.name}@{worst.offset}")
        yield Symptom(SymptomKind.FAILING, severity, start_ns, text, group, question)


def _failed_with(worst: ListenerFailures, of_queues: list[ListenerFailures]) -> str:
    """`179 times with orders/broker-a/0@0, for which its queue waits`."""
    place = f"{worst.queue.name}@{worst.offset}"
    if worst.times > 1:
        waits = "waits" if worst.censored else "waited"
        return (
            f"{worst.times:,} times with {place} since {worst.since_ns / NS_PER_S:.1f} s, for which its queue {waits}"
        )
    copies = sum(item.failures for item in of_queues if _is_retried(item))
    messages = sum(item.messages for item in of_queues if not _is_retried(item))
    first = [f"with {count(messages, 'message')}"] if messages else []
    again = [f"{count(copies, 'time')} with copies in its retry topic"] if copies else []
    return f"{' and '.join([*first, *again])}, such as {place}"


def _is_retried(item: ListenerFailures) -> bool:
    return item.queue.topic.startswith(RETRY_TOPIC_PREFIX)


def _again(found: Findings, context: Context) -> Iterator[Symptom]:
    rows = sorted(found.of(DUPLICATES), key=lambda item: item.queue.group)
    for group, same in groupby(rows, key=lambda row: row.queue.group):
        of_queues = list(same)
        again, worst = sum(of_queue.duplicates for of_queue in of_queues), max(of_queues, key=attrgetter("duplicates"))
        messages = sum(item.messages for item in found.of(LATENCIES) if item.group == group)
        if again >= context.limits.again_messages and messages:
            share_pct = 100 * again / messages
            text = f"{group} consumed {again:,} messages again, {share_pct:.1f} for each 100 messages"
            severity = 10 * share_pct / context.limits.again_per_mille
            # Who owned the queue in the second in which most of them came, not at the end of the run.
            impact = impact_on(found.of(IMPACTS), SymptomKind.AGAIN, group)
            at_ns = max(0, context.end_ns - 1) if impact is None or impact.worst_ns < 0 else impact.worst_ns
            yield Symptom(SymptomKind.AGAIN, severity, at_ns, text, group, about_queue(worst.queue, instant(at_ns)))


def _churn(found: Findings, _context: Context) -> Iterator[Symptom]:
    for (group, topic), rows in groupby(found.of(REBALANCES), key=attrgetter("group", "topic")):
        worst = max(rows, key=lambda row: row.acquired / _takes(row))
        text = (
            f"{group} took queues of {topic} {worst.acquired:,} times from {worst.start_ns / NS_PER_S:.1f} s to "
            f"{worst.end_ns / NS_PER_S:.1f} s; {worst.moved} of {worst.queues} had to move"
        )
        question = about_group(group, instant(worst.end_ns - 1))
        severity = worst.acquired / _takes(worst)
        yield Symptom(SymptomKind.CHURN, severity, worst.start_ns, text, f"{group} {topic}", question)


def _takes(rebalance_cost: RebalanceCost) -> float:
    """How often queues are taken at most in a healthy rebalance.

    Queues that must move are taken once. Members that join one after the other allocate all queues by one, by two, by
    three. And each queue may once come to a wrong member, since members ask different brokers.
    """
    joins = sum(1 / number for number in range(1, len(rebalance_cost.joined) + 1))
    return rebalance_cost.moved + rebalance_cost.queues * (1 + joins) or 1.0


def _spread(found: Findings, context: Context) -> Iterator[Symptom]:
    for item in found.of(QUEUE_BALANCE):
        if item.topics > 1 and item.maximum - item.minimum > 1:
            text = f"at the end a member of {item.group} had {item.maximum} queues of {item.topics} "
            text += f"topics, another {item.minimum}"
            severity = item.maximum / max(1, item.minimum) / context.limits.balance_times
            yield Symptom(SymptomKind.SPREAD, severity, context.end_ns, text, item.group, about_group(item.group))


def _idle(found: Findings, context: Context) -> Iterator[Symptom]:
    """A member without a queue, where there are enough: it cannot be that RocketMQ has none to give."""
    for item in found.of(IDLE):
        avoidable = item.idle - item.unavoidable
        text = f"{avoidable} of {item.members} members of {item.group} had no queue of {item.topic} at the end"
        subject = f"{item.group} {item.topic}"
        yield Symptom(SymptomKind.IDLE, 2.0 * avoidable, context.end_ns, text, subject, about_group(item.group))


def _stale_routes(found: Findings, context: Context) -> Iterator[Symptom]:
    rows = sorted(found.of(STALE_ROUTES), key=attrgetter("topic"))
    for topic, same in groupby(rows, key=attrgetter("topic")):
        stale = list(same)
        longest = max(stale, key=lambda item: _times_stale(item, context))
        lasted_s = (longest.end_ns - longest.start_ns) / NS_PER_S
        text = (
            f"{longest.node} used a route of {topic} that no nameserver gave any more for {lasted_s:.1f} s from "
            f"{longest.start_ns / NS_PER_S:.1f} s on"
        )
        question = about_topic(topic, inside(longest))
        severity = _times_stale(longest, context)
        yield Symptom(SymptomKind.STALE_ROUTES, severity, longest.start_ns, text, topic, question)


def _times_stale(route: StaleRoute, context: Context) -> float:
    """How many times above its limit a route was stale; a proxy may add its own cache to it."""
    limit_ms = context.limits.stale_route_ms + (PROXY_CACHE_MS if route.behind_proxy else 0)
    return (route.end_ns - route.start_ns) / NS_PER_MS / limit_ms


def _fan_out(found: Findings, context: Context) -> Iterator[Symptom]:
    limits = context.limits
    for item in found.of(REQUESTS):
        is_notification = item.request == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED.name
        if is_notification and item.max_per_s >= limits.notifications_per_s:
            text = (
                f"brokers notified members {item.exchanges:,} times that their group had changed: "
                f"{item.share_pct:.0f} % of all requests, and {item.max_per_s:,} in second {item.max_at_s}"
            )
            severity = item.share_pct / limits.notifications_percent
            question = _largest_change(found, item.max_at_s * NS_PER_S)
            yield Symptom(SymptomKind.FAN_OUT, severity, item.max_at_s * NS_PER_S, text, "", question)


def _largest_change(found: Findings, at_ns: int) -> Words:
    """The group with the most members of those that changed at an instant, or before; if none has, the requests."""
    changes = [row for row in found.of(REBALANCES) if row.start_ns <= at_ns + NS_PER_S]
    if not changes:
        return ("storm", "at", instant(at_ns + NS_PER_S))
    largest = max(changes, key=lambda row: (row.end_ns >= at_ns, row.members, row.start_ns))
    return about_group(largest.group, instant(at_ns + NS_PER_S))


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 2 else f"{len(names)} clients ({names[0]}, {names[1]}, …)"
