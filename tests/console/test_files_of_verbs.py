"""Files that verbs read and write: any file for the terminal, those of the run for everybody else."""

import os
from pathlib import Path

import pytest

from emulator.spec import load
from emulator.testing import a_scenario, run_at_console
from emulator.testing.console import ConsoleUser

SECRET = "the first line of a secret"


def sat(tmp_path, sitting, from_ms=2_000):
    """Run a small cluster with somebody at its socket or page, and somebody at its terminal."""
    done = []

    async def both(me: ConsoleUser) -> None:
        await me.at_ms(from_ms)
        await sitting(ConsoleUser(me.session.confined()), me)
        done.append(True)

    run_at_console(a_scenario(run_for_ms=5_000), tmp_path / "runs", both)
    assert done


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret.toml"
    path.write_text(SECRET)
    return path


def test_a_script_from_outside_is_a_file_of_the_run(tmp_path, secret):
    async def sitting(outside, inside):
        run = inside.session.run_directory
        for way in (secret, "../../secret.toml", f"{run.resolve()}/../../secret.toml", "link", "links/secret.toml"):
            (run / "link").unlink(missing_ok=True)
            (run / "link").symlink_to(secret)
            (run / "links").unlink(missing_ok=True)
            (run / "links").symlink_to(tmp_path)
            reported = await outside.refused(f"script {way}")
            assert "expected a file below the run directory" in reported
            assert "secret of" not in reported
            assert SECRET not in reported
        (run / "mine").write_text("status\n")
        assert len(await outside.say("script mine")) > 1
        assert "there is no verb the" in await inside.refused(f"script {secret}")

    sat(tmp_path, sitting)


def test_what_is_saved_from_outside_is_a_scenario_next_to_the_trace(tmp_path, secret):
    async def sitting(outside, inside):
        run = inside.session.run_directory
        for way in (secret, "../x.toml", "/tmp/x.toml"):
            assert "expected a file below the run directory" in await outside.refused(f"save {way}")
        for name in ("manifest.json", "log.jsonl", "trace", "."):
            assert "expected the name of a scenario" in await outside.refused(f"save {name}")
        assert "No such file" in await outside.refused("save nowhere/x.toml")
        await outside.say("kill broker-a")
        assert await outside.say("save x.toml") == (f"saved; do it again with: rmqemu run {run.resolve() / 'x.toml'}",)
        assert [timed.id for timed in load(run / "x.toml").faults.faults] == ["kill-1"]
        await inside.say(f"save {tmp_path / 'anywhere'}")
        assert (tmp_path / "anywhere").read_text() == (run / "x.toml").read_text()

    sat(tmp_path, sitting)
    assert secret.read_text() == SECRET


def test_a_verb_for_later_has_no_more_files_than_who_said_it(tmp_path, secret):
    reported: list[str] = []

    async def sitting(outside, inside):
        inside.session.printers.append(reported.append)
        await outside.say(f"at +1ms script {secret}")
        await outside.say(f"at +1ms save {secret}")
        await inside.at_ms(inside.session.now_ms + 10)

    sat(tmp_path, sitting)
    assert len(reported) == 2
    assert all("expected a file below the run directory" in line for line in reported)


def test_who_is_outside_shares_the_faults_of_the_session(tmp_path):
    async def sitting(outside, inside):
        assert await outside.say("kill broker-a") == ("kill-1: kill broker-a",)
        assert await inside.say("heal kill-1") == ("healed kill-1: kill broker-a",)
        assert await inside.say("kill broker-a") == ("kill-2: kill broker-a",)
        assert outside.session.by_hand() == inside.session.by_hand()
        assert [timed.for_ms is None for timed in outside.session.by_hand().faults.faults] == [False, True]

    sat(tmp_path, sitting)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.truncate(path.touch() or path, 1 << 30)])
def test_an_odd_file_makes_no_one_wait(tmp_path, make):
    async def sitting(outside, inside):
        make(inside.session.run_directory / "odd")
        assert "cannot be read: expected" in await outside.refused("script odd")
        assert "cannot be read: expected" in await inside.refused(f"script {inside.session.run_directory / 'odd'}")

    sat(tmp_path, sitting)


def test_a_scenario_can_be_saved_before_any_time_has_passed(tmp_path):
    async def sitting(_outside, inside):
        await inside.say(f"save {tmp_path / 'now.toml'}")

    sat(tmp_path, sitting, from_ms=0)
    assert load(tmp_path / "now.toml").run_for_ms == 1
    assert Path(tmp_path / "now.toml").stat().st_size > 0
