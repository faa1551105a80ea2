"""`rmqemu up` ends after Ctrl-C, whatever it does: here it calls code that never returns."""

import signal

from support.rmqemu_process import started
from support.waiting import PATIENCE_S, until

SCENARIO = """
[scenario]
name = "stubborn"
run_for_s = 60
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
[[consumer]]
group = "shop"
names = ["c1"]
topics = ["orders"]
options = { allocateMessageQueueStrategy = "stubborn:stubborn" }
"""
CODE = """
import signal
import time
from pathlib import Path

def stubborn(_group, _client_id, queues, _members, /):
    Path("called").touch()
    while True:
        try:
            time.sleep(0.05)
            if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
                Path("heard").touch()
        except KeyboardInterrupt:
            pass
"""


def stubborn(folder):
    """A cluster that never comes back from the code of its scenario."""
    (folder / "stubborn.toml").write_text(SCENARIO)
    (folder / "stubborn.py").write_text(CODE)
    process = started("up", "stubborn.toml", "--allow-code", cwd=folder)
    until((folder / "called").exists)
    process.send_signal(signal.SIGINT)
    until((folder / "heard").exists)
    return process


def test_it_ends_some_seconds_after_the_first(tmp_path):
    _, stderr = stubborn(tmp_path).communicate(timeout=PATIENCE_S)
    assert stderr.splitlines()[-1] == "rmqemu: not ended within 5 s; what was traced until now can be read"


def test_it_ends_at_once_with_the_second(tmp_path):
    process = stubborn(tmp_path)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "not ended" in stderr) == (-signal.SIGINT, False)
