"""The state of a watch in a checkpoint: a folder that somebody sends you must not run code."""

import os
import pickle
from functools import partial
from operator import attrgetter

import pytest

from emulator.analysis.live.changes import LiveWatch
from emulator.base.own_values import ForeignValueError, unpickled
from emulator.spec.code.user_code import UserCode
from nodes.beliefs import MessageEvent

PACKAGES = ("emulator.analysis.live", "emulator.history", "nodes.beliefs")


class Calls:
    """Pickles as the call of something."""

    def __init__(self, called, *arguments):
        self.called = called, arguments

    def __reduce__(self):
        return self.called


def named(module, name):
    """A pickle that is what a module has under a name."""
    return (
        b"\x80\x04\x8c"
        + bytes([len(module)])
        + module.encode()
        + b"\x8c"
        + bytes([len(name)])
        + name.encode()
        + b"\x93."
    )


HOSTILE = {
    "a program": lambda ran: pickle.dumps(Calls(os.system, f"touch {ran}")),
    "eval": lambda ran: pickle.dumps(Calls(eval, f"open({str(ran)!r}, 'w')")),
    "open": lambda ran: pickle.dumps(Calls(open, str(ran), "w")),
    "a program in a container": lambda ran: pickle.dumps([{"x": Calls(os.system, f"touch {ran}")}]),
    "a partial of a program": lambda ran: pickle.dumps(Calls(partial(os.system, f"touch {ran}"))),
    "a getter": lambda _: pickle.dumps(attrgetter("__class__")),
    "a class of another package": lambda _: pickle.dumps(UserCode()),
    "what a module has imported": lambda _: named("emulator.analysis.live.changes", "json"),
    "what that has": lambda _: named("emulator.analysis.live.changes", "json.loads"),
    "a class that a module has imported": lambda _: named("emulator.analysis.live.changes", "Counter"),
    "a function of a module": lambda _: named("emulator.history.rows.row_classes", "maker"),
    "special methods": lambda _: pickle.dumps(Calls(getattr, LiveWatch({}), "__init__")),
    "attributes": lambda _: pickle.dumps(Calls(getattr, LiveWatch({}), "rows")),
    "methods of Python": lambda _: pickle.dumps(Calls(getattr, {}, "get")),
    "a package of a like name": lambda _: named("emulator.analysis.liver", "x"),
    "half of it": lambda _: pickle.dumps(MessageEvent.STORED)[:-3],
    "nothing": lambda _: b"",
}


@pytest.mark.parametrize("subject", HOSTILE)
def test_a_state_that_is_none_calls_nothing(tmp_path, subject):
    content = HOSTILE[subject](tmp_path / "ran")

    with pytest.raises(ForeignValueError, match="no value of this program: "):
        unpickled(content, PACKAGES)
    assert list(tmp_path.iterdir()) == []


def test_a_state_of_another_kind_is_no_watch():
    with pytest.raises(ForeignValueError, match="a MessageEvent in the place of a watch"):
        LiveWatch.restored(pickle.dumps(MessageEvent.STORED))


def test_the_state_of_a_watch_is_read():
    assert LiveWatch.restored(LiveWatch({"ba": "broker-a"}).state()).differences == ()


@pytest.mark.parametrize("name", ["STORED", "CONSUMED"])
def test_a_member_of_an_enum_is_read_as_python_before_3_11_4_names_it(name):
    stored = pickle.dumps(Calls(getattr, MessageEvent, name))
    assert unpickled(stored, PACKAGES) is MessageEvent[name]


@pytest.mark.parametrize("name", ["mro", "_missing_", "__members__", "MISSING"])
def test_nothing_else_of_an_enum_is_read(name):
    with pytest.raises(ForeignValueError):
        unpickled(pickle.dumps(Calls(getattr, MessageEvent, name)), PACKAGES)
