"""Ten minutes at the console of a live cluster, as somebody would spend them; then the same again in `sim`.

    PYTHONPATH=tests python -m sessions.record_console_session DIRECTORY

leaves in DIRECTORY what is retained of it: the scenario that the console saved, and every change of a view.
It takes ten minutes, so `make test` does not run it; it replays what was recorded.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pexpect

from emulator.run.run import BY_HAND_FILE
from sessions.view_changes import view_changes

SCENARIO = """
[scenario]
name = "session"
seed = 7
run_for_s = 3600

[nameserver]
count = 2

[[broker]]
name = "broker-a"

[[broker]]
name = "broker-b"

[[topic]]
name = "orders"
queues = 4

[[consumer]]
group = "g"
topics = ["orders"]
names = ["c1", "c2"]

[[producer]]
group = "pg"
topic = "orders"
rate_per_s = 5
"""
SESSION = (
    (20, "cut c1 broker-a", "cut-1: cut c1 <-> broker-a"),
    (65, "heal cut-1", "healed cut-1"),
    (95, "suspend c2", "suspend-1: suspend c2"),
    (140, "resume c2", "healed suspend-1"),
    (170, "kill broker-a", "kill-1: kill broker-a"),
    (215, "start broker-a", "healed kill-1"),
    (255, "restart c1", "restarted c1"),
    (285, "cut ns-1 broker-b", "cut-2: cut ns-1 <-> broker-b"),
    (330, "suspend broker-b", "suspend-2: suspend broker-b"),
    (345, "heal all", "healed suspend-2"),
    (375, "kill c2", "kill-2: kill c2"),
    (405, "start c2", "healed kill-2"),
    (435, "power-off ns-2", "power_off-1: power off ns-2"),
    (485, "start ns-2", "healed power_off-1"),
    (515, "scale g 3", "scale-1: scale g to 3"),
    (560, "heal all", "healed scale-1"),
    (600, "quit", "do again what was done interactively"),
)
"""Second of the session, what is typed, and what is reported."""


def sit_at_the_console(directory: Path) -> Path:
    """Sit at the console for ten minutes; returns the run directory."""
    (directory / "session.toml").write_text(SCENARIO, encoding="utf-8")
    terminal = pexpect.spawn(
        sys.executable,
        ["-m", "emulator.cli", "up", "session.toml"],
        cwd=str(directory),
        env=dict(os.environ, TERM="xterm", PROMPT_TOOLKIT_NO_CPR="1", XDG_STATE_HOME=str(directory / "state")),
        encoding="utf-8",
        timeout=30,
        dimensions=(40, 160),
    )
    terminal.expect(r"\[0 faults active\]>")
    began = time.monotonic()
    for at_s, typed, reported in SESSION:
        while time.monotonic() < began + at_s:
            terminal.expect([pexpect.TIMEOUT, "\n"], timeout=1)  # somebody reads the events meanwhile
        terminal.send(f"{typed}\r")
        terminal.expect(reported)
    terminal.expect(pexpect.EOF)
    return next((directory / "runs").iterdir())


def main() -> None:
    """Run, and keep."""
    retained = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        run = sit_at_the_console(Path(scratch))
        retained.mkdir(parents=True, exist_ok=True)
        shutil.copy(run / BY_HAND_FILE, retained / BY_HAND_FILE)
        text = json.dumps(view_changes(run), indent=0, ensure_ascii=False)
        (retained / "view_changes.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
