"""Verbs that let time pass or are done later, and scripts of verbs."""

import attrs
import pytest
from typer.testing import CliRunner

from emulator.cli.main import app
from emulator.cli.terminal import BAD_INPUT
from emulator.run.run import BY_HAND_FILE
from emulator.spec import to_dict
from emulator.testing import ConsoleUser, a_scenario, run_at_console
from emulator.trace.run_directory import open_run


def scenario(run_for_s=120, **given):
    return attrs.evolve(a_scenario(consumers=2, nameservers=2, **given), run_for_ms=run_for_s * 1_000)


def test_run_for_lets_exactly_so_much_time_pass(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(5_000)
        for word, then_ms in (("2s", 7_000), ("1.5", 8_500), ("250ms", 8_750), ("1m", 68_750)):
            await me.say(f"run-for {word}")
            assert me.session.now_ms == then_ms

    run_at_console(scenario(), tmp_path, sitting)


def test_a_verb_is_done_at_its_instant_and_what_comes_of_it_is_reported(tmp_path):
    numberses: list[tuple[int, str]] = []

    async def sitting(me: ConsoleUser) -> None:
        me.session.printers.append(lambda line: numberses.append((me.session.now_ms, line)))
        await me.at_ms(5_000)
        assert await me.say("at 20s cut c1 broker-a") == ("at 20.000 s: cut c1 broker-a",)
        assert await me.say("at +30s heal cut-7") == ("at 35.000 s: heal cut-7",)
        await me.at_ms(50_000)

    _, trace = run_at_console(scenario(), tmp_path, sitting)
    assert [row.at_ms for row in trace.select("faults", event="begin")] == [20_000]
    assert numberses == [
        (20_000, "cut-1: cut c1 <-> broker-a"),
        (35_000, "heal cut-7: there is no active fault cut-7; did you mean cut-1?"),
    ]


def test_step_lets_time_pass_until_something_happens(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(30_000)
        await me.say("at +5s kill c2")
        (line,) = await me.say("step")
        assert line.split()[1:] == ["FAULT", "begin", "kill", "c2"]
        assert me.session.now_ms == 35_000
        assert len(await me.say("step 3")) == 3

    run_at_console(scenario(), tmp_path, sitting)


@pytest.mark.parametrize(
    ("first", "condition", "from_s", "to_s"),
    [
        ("", "agree", 30, 30),
        ("kill c2", "orders/broker-a/3 c1", 30, 51),
        ("kill c2", "orders/broker-a/3 somebody", 30, 51),
        ("kill c2", "c2 down", 30, 31),
        ("at +10s suspend c2", "c2 suspended", 40, 40),
        ("at +10s power-off c2", 'c2 "powered off"', 40, 40),
        ("restart c2", "c2 ready", 30, 32),
        ("cut c2 broker-a", "orders/broker-a/3 several", 30, 200),
        ("cut c2 broker-a", "differ g/orders", 30, 200),
    ],
)
def test_until_lets_time_pass_until_it_is_so(tmp_path, first, condition, from_s, to_s):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(30_000)
        if first:
            await me.say(first)
        (reported,) = await me.say(f"until {condition}")
        assert from_s <= me.session.now_ms / 1_000 <= to_s
        assert reported.endswith(condition.replace('"', ""))

    run_at_console(scenario(300), tmp_path, sitting)


REFUSED = [
    ("run-for soon", "expected a time such as 30s, 500ms or 2m, not soon"),
    ("at 1s status", "expected an instant to come: 1s was 1.000 s ago"),
    ("at +1s frobnicate", "there is no verb frobnicate; "),
    ("at +1s heal", "expected: heal FAULT...|all"),
    ("step 0", "expected a number of events from 1 to 1000, not 0"),
    ("until c9 ready", "there is no node c9; there are ns-1, "),
    ("until c1 happy", "there is no state happy; "),
    ("until orders/broker-a/0", "expected a node, no one, somebody or several after the queue"),
    ("until c1 down within 3s", "not so within 3 s: c1 down"),
    ("owners payments", "there is no topic payments; "),
    ("help frob", "there is no verb frob; "),
    ("script nowhere", "nowhere: cannot be read: No such file or directory"),
]


def test_what_cannot_be_waited_for_is_refused_in_one_line(tmp_path):
    answers = {}

    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(2_000)
        for line, _ in REFUSED:
            answers[line] = await me.refused(line)

    run_at_console(scenario(10), tmp_path, sitting)
    assert {line: answers[line] for line, why in REFUSED if not answers[line].startswith(why)} == {}


def script(tmp_path, text):
    import tomli_w

    (tmp_path / "small.toml").write_text(tomli_w.dumps(to_dict(scenario(60))))
    (tmp_path / "afternoon").write_text(text)
    arguments = ["run", str(tmp_path / "small.toml"), "--script", str(tmp_path / "afternoon"), "--runs", str(tmp_path)]
    return CliRunner().invoke(app, arguments)


def test_a_script_runs_after_the_start_and_its_run_ends_with_it_or_the_scenario(tmp_path):
    text = "# an afternoon\n\ncut c1 broker-a  # half of it\nrun-for 90s\nheal all\nuntil agree\n"
    result = script(tmp_path, text)
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert [lines[0], lines[2]] == ["cut-1: cut c1 <-> broker-a", "healed cut-1: cut c1 <-> broker-a"]
    run = open_run(lines[-1])
    assert 90 <= run.end_ns / 1e9 < 200
    assert (run.path / BY_HAND_FILE).exists()
    short = script(tmp_path, "status\n")
    assert open_run(short.stdout.splitlines()[-1]).end_ns == 60_000_000_000


@pytest.mark.parametrize(
    ("text", "why", "done"),
    [
        ("status\ncutt c1\n", "afternoon:2: there is no verb cutt; did you mean cut?", 0),
        (
            "status\n\nheal cut-1\nstatus\n",
            "afternoon:3: heal cut-1: there is no active fault cut-1; there are none",
            1,
        ),
        ("script afternoon\n", "afternoon:1: a script cannot do another one", 0),
        ('cut "c1\n', 'afternoon:1: cut "c1: no closing quotation', 0),
    ],
)
def test_a_script_stops_at_its_first_bad_line_with_its_number(tmp_path, text, why, done):
    result = script(tmp_path, text)
    assert result.exit_code == BAD_INPUT
    assert why in result.stderr
    assert result.stderr.count("\n") == 1
    assert len([line for line in result.stdout.splitlines() if "nodes: " in line]) == done
