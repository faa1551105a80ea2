"""The questions of `rmqemu why`: one table, from which messages, helps and the README are made."""

import attrs


@attrs.frozen
class Form:
    """One kind of question."""

    words: str
    """Capitals are placeholders, brackets are optional, T is a time such as 31.2s."""
    answers: str
    """What its answer contains."""
    example: str
    """Words that could be typed."""


FORM_TABLE = (
    Form(
        "queue TOPIC/BROKER/ID [of GROUP] [at T]",
        "who owns a queue, and why; first of all, what keeps it from moving",
        "queue orders/broker-a/3 at 300s",
    ),
    Form(
        "stall TOPIC/BROKER/ID [of GROUP] [at T]",
        "what keeps the messages of one queue waiting",
        "stall orders/broker-a/3 of billing",
    ),
    Form("lag GROUP [at T]", "which queues of a group have messages that wait, and why", "lag billing at 90s"),
    Form(
        "group GROUP [at T]",
        "the members of a group at each broker, its mode, its subscriptions, its queues, where it began",
        "group billing",
    ),
    Form(
        "topic TOPIC [at T]",
        "who lists a topic, who serves it, with which permission, and what changed it",
        "topic orders at 60s",
    ),
    Form(
        "message TOPIC/BROKER/ID@OFFSET [at T]",
        "what became of a message, which may also be named by its key or unique id: stored, consumed, retried, lost",
        "message orders/broker-a/3@17",
    ),
    Form(
        "transaction ID [at T]",
        "its half message, checks, decisions, ends, and deliveries",
        "transaction 7F016401051500000000000000040000",
    ),
    Form(
        "storm [of CLIENT] [at T]",
        "which client asks a server far more often than a healthy one, how it is answered, and why",
        "storm at 120s",
    ),
    Form(
        "sends [of NODE] [at T]",
        "which attempts to send failed until T, which server refused or did not answer them, and why",
        "sends of producer-1",
    ),
    Form("node NODE [at T]", "the last thing that happened to a process", "node broker-b at 200s"),
    Form(
        "KIND SUBJECT [of NODE] [at T]",
        "why a node holds a belief, such as view, route, consumer_ids, live_brokers",
        "view billing/orders of consumer-3",
    ),
    Form(
        "no ITEM in KIND SUBJECT [of NODE] [at T]",
        "why a belief lacks something",
        "no consumer-2 in consumer_ids billing at 200s",
    ),
)
FORMS = f"{', '.join(form.words for form in FORM_TABLE[:-1])}, or {FORM_TABLE[-1].words}"
"""All forms, on one line."""
