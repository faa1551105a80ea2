"""What all tests share."""

import atexit
import gc
import os
import signal
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings

from emulator.base.process_wide import frozen_objects

pytest_plugins = ["support.kinds", "support.one_spark", "support.times", "support.trap_marks"]

# How long an example takes says more of the machine than of us, and the same tests must give the same result.
_STEADY = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("rmqemu", _STEADY, max_examples=25)
settings.register_profile("proofs", _STEADY, max_examples=100)
settings.load_profile("rmqemu")

# A shell starts what runs in its background with SIGINT ignored: tests of Ctrl-C, and the commands that they start,
# would never hear it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# `nohup` starts its command with hang-ups ignored: tests of them would wait for ever.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


# Commands judge on Spark where it is installed. They print the same either way, and Java takes seconds to start.
os.environ.setdefault("RMQEMU_ENGINE", "local")
# The first command on Spark would make an archive of classes in the background, which takes a core for half a minute.
os.environ.setdefault("RMQEMU_SPARK_ARCHIVE", "off")

# A collection only makes objects that stay: to look for garbage among them takes two of its fourteen CPU seconds.
gc.disable()
_frozen = ExitStack()


def pytest_collection_finish() -> None:
    """Freeze what ten thousand collected tests hold: visiting it took a third of the time of the scenarios."""
    _frozen.enter_context(frozen_objects())
    gc.enable()


@atexit.register
def _thaw() -> None:
    """What is frozen is never freed, and extension modules complain of it at the end of the process."""
    _frozen.close()


@pytest.fixture(scope="module", autouse=True)
def _what_a_module_leaves_is_frozen():
    """Else each world of the later modules, which is collected at its end, would pay for what all earlier ones left."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def nothing_is_frozen():
    """As in an ordinary process: where the test session has frozen its objects, worlds freeze and thaw none."""
    _frozen.close()
    yield
    _frozen.enter_context(frozen_objects())
