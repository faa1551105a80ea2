"""Verbs that ask for reasons."""

from emulator.verbs.desk import Desk
from emulator.verbs.verb import Lines, Verb, VerbError, Words


async def _why(desk: Desk, words: Words) -> Lines:
    from emulator.why.answer import answer  # noqa: PLC0415 - who never asks does not wait for Arrow's computing
    from emulator.why.names import names_of  # noqa: PLC0415
    from emulator.why.question import WhyError  # noqa: PLC0415

    try:
        desk.cluster.world.recorder.flush()
    except OSError as error:
        raise VerbError(f"the trace cannot be written: {error.strerror or error}") from None
    ips = {host.name: host.ip for host in desk.cluster.hosts.values()}
    try:
        return answer(words, desk.run_directory, names_of(ips, desk.cluster.scenario.brokers, desk.cluster.names))
    except WhyError as error:
        raise VerbError(str(error)) from None


ASKING = (
    Verb(
        "why",
        "QUESTION",
        "what led there: queue TOPIC/BROKER/ID, KIND SUBJECT, or node NODE; [of X] [at T]",
        _why,
        1,
        8,
    ),
)
