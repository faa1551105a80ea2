"""A command without memory says so and ends with 2: status 1 would say that an oracle was violated."""

import resource
import subprocess
import sys

import pytest

MIB = 1 << 20


def within(mib, *words):
    """Run a command that may have so much memory."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (mib * MIB, mib * MIB))

    command = [sys.executable, "-m", "emulator.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)


@pytest.mark.parametrize("words", [("check", "first-cluster"), ("analyze", "nowhere")])
def test_a_command_that_runs_out_of_memory_while_it_is_loaded_does_not_end_as_if_an_oracle_was_violated(words):
    ended = {mib: within(mib, *words) for mib in (32, 36, 40, 44, 48, 56)}

    assert [mib for mib, done in ended.items() if done.returncode == 1] == []
    lines = [done.stderr for done in ended.values() if "out of memory" in done.stderr]
    assert lines
    assert [text for text in lines if not text.startswith("rmqemu: out of memory") or text.count("\n") != 1] == []
