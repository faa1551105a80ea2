"""Whatever words are said to a running cluster, they are done or refused in one short line."""

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from emulator.base.errors import LINE_MAX
from emulator.console.verb import VerbError
from emulator.console.verbs import VERBS
from emulator.testing import a_scenario, run_at_console
from emulator.why.question import WhyError, question
from faults.catalogue import CHAOS_NAMES
from nodes.visible import visible

LONG, DIGITS = "x" * 100_000, "9" * 5_000
WORDS = [
    *("broker-a", "c1", "ns-1", "guest", "*", "brokers", "random servers", "acting master of broker-a", "members of g"),
    *("owner of orders/broker-a/0", "owner of orders/broker-a/²", f"owner of orders/broker-a/{DIGITS}", f"g+{DIGITS}"),
    *("g", "orders", "orders/broker-a/1", "isolate", "among", "with", "next", "code", "topic", "during", "one-way"),
    *("all", "agree", "within", "nobody", "ready", "queue", "node", "at", "of", "view", *CHAOS_NAMES),
    *("0", "-1", "+1", "-+1", "1", "34", "4", "100", "²", "٣", "1e9", "nan", "inf", DIGITS, str(2**63), "1s", "+2s"),
    *(
        f"{DIGITS}s",
        f"{DIGITS}h",
        "0ms",
        LONG,
        "''",
        "'",
        '"',
        "\\",
        "#",
        "\0",
        "a\nb",
        "\x1b[2J",
        "\ud800",
        "$HOME",
        "é",
    ),
    *("../x.toml", "/etc/passwd", "x.toml", ".", "trace", "ctl.sock", "log.jsonl"),
]
verbs = st.sampled_from([verb for verb in VERBS if verb != "quit"])
words = st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=5).map(" ".join)
lines = st.builds("{} {}".format, verbs | st.sampled_from(WORDS), words)


def require_one_short_line(reported):
    assert reported == visible(reported)
    assert len(reported) <= LINE_MAX


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


def each_verb_with(chosen):
    return [f"{verb} {word}" for verb in VERBS if verb not in ("quit", "run-for", "step", "until") for word in chosen]


@given(st.lists(lines, min_size=20, max_size=40))
@settings(max_examples=3, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
@example(each_verb_with(WORDS[::9]))
def test_words_are_done_or_refused_in_one_short_line(runs, answer):
    say_all(runs, answer)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(9))
def test_each_word_behind_each_verb_is_done_or_refused_in_one_short_line(runs, first):
    say_all(runs, each_verb_with(WORDS[first::9]))


def say_all(runs, answer):
    requested = 0

    async def script(user):
        nonlocal requested
        session = user.session.confined()
        for line in answer:
            requested += 1
            try:
                reported = await session.say(line)
            except VerbError as error:
                require_one_short_line(str(error))
            else:
                assert all(item == visible(item) for item in reported), line

    run_at_console(a_scenario(consumers=1, run_for_ms=60_000), runs, script)
    assert requested > 0


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=6))
@settings(max_examples=200)
def test_a_question_is_parsed_or_refused_in_one_short_line(requested):
    try:
        question(requested)
    except WhyError as error:
        require_one_short_line(str(error))
