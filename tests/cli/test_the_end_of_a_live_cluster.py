"""`rmqemu up` ends after Ctrl-C, whatever it does: here it calls code that never returns."""

import signal
import time

from support.rmqemu_process import started

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
PATIENCE_S = 60


def stubborn(folder):
    """A cluster that never comes back from the code of its scenario."""
    (folder / "stubborn.toml").write_text(SCENARIO)
    (folder / "stubborn.py").write_text(CODE)
    process = started("up", "stubborn.toml", "--allow-code", cwd=folder)
    _until_there(folder / "called")
    process.send_signal(signal.SIGINT)
    _until_there(folder / "heard")
    return process


def _until_there(path):
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert path.exists()


def test_it_ends_some_seconds_after_the_first(tmp_path):
    _, stderr = stubborn(tmp_path).communicate(timeout=PATIENCE_S)
    assert stderr.splitlines()[-1] == "rmqemu: not ended within 5 s; what was traced until now can be read"


def test_it_ends_at_once_with_the_second(tmp_path):
    process = stubborn(tmp_path)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "not ended" in stderr) == (-signal.SIGINT, False)
