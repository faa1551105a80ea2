"""Verbs of the registry as methods: their words, what they report, what they refuse."""

import inspect

import pytest

import emulator
from emulator.console.verbs import VERBS
from emulator.machine.power import PowerState
from support.small_cluster import launched


@pytest.fixture
def cluster(tmp_path):
    with launched(tmp_path) as launched_cluster:
        launched_cluster.advance(3_000)
        yield launched_cluster


def test_every_verb_is_a_method_that_explains_itself(cluster):
    for verb in VERBS.values():
        method = getattr(cluster, verb.name.replace("-", "_"))
        assert callable(method)
        assert method.__name__ in dir(cluster)
        explained = inspect.getdoc(method)
        assert explained is not None
        assert verb.summary[1:] in explained
        assert verb.usage in explained


def test_words_may_be_texts_numbers_and_enums(cluster):
    assert cluster.loss(20, "c1", "broker-a", "one-way").lines == ("loss-1: lose 20 % on c1 -> broker-a",)
    assert cluster.delay(50.0).lines == ("delay-1: delay all links by 50 ms",)
    assert cluster.power_off("c2").lines == ("power_off-1: power off c2",)
    assert cluster.heal("loss-1").lines == ("healed loss-1: lose 20 % on c1 -> broker-a",)
    with pytest.raises(emulator.VerbError, match=r"expected a text or a number, not \['c1'\]"):
        cluster.kill(["c1"])
    with pytest.raises(emulator.VerbError, match="there is no node suspended"):
        cluster.kill(PowerState.SUSPENDED)


@pytest.mark.parametrize(
    ("say", "why"),
    [
        (lambda cluster: cluster.cut("c1", "brokr-a"), "there is no node brokr-a; did you mean broker-a?"),
        (lambda cluster: cluster.cut(), "expected: cut A [B] [one-way]"),
        (lambda cluster: cluster.resume("c1"), "c1 is not suspended: there is nothing to resume"),
        (lambda cluster: cluster.heal("cut-9"), "there is no active fault cut-9; there are none"),
        (lambda cluster: cluster.kill("c1; kill c2"), "expected the exact name of a node"),
    ],
)
def test_what_cannot_be_done_is_raised_with_one_line_and_changes_nothing(cluster, say, why):
    before_ms = cluster.now_ms
    with pytest.raises(emulator.VerbError) as raised:
        say(cluster)
    assert str(raised.value).startswith(why)
    assert "\n" not in str(raised.value)
    assert cluster.now_ms == before_ms
    assert cluster.faults().lines == ("no fault is active",)


def test_what_is_no_verb_is_an_attribute_error(cluster):
    with pytest.raises(AttributeError, match="a cluster has no brek; help"):
        cluster.brek("c1")
    assert not hasattr(cluster, "__wrapped__")


def test_reported_lines_are_a_sequence_that_prints_as_lines(cluster):
    reported = cluster.nodes()
    assert str(reported) == repr(reported) == "\n".join(reported.lines)
    assert list(reported) == list(reported.lines)
    assert reported[0] in reported
    assert len(reported) == len(reported.lines)


def test_a_verb_that_looks_shows_itself_without_being_called_and_one_that_breaks_does_not(cluster):
    assert str(cluster.status()) == repr(cluster.status)
    assert "fault" in cluster.faults._repr_mimebundle_()["text/html"]
    assert repr(cluster.kill) == "kill NODES: end a process as SIGKILL does; its connections are closed"
    assert repr(cluster.quit) == "quit: end the run"
    assert cluster.quit._repr_mimebundle_() == {"text/plain": "quit: end the run"}
    assert cluster.faults().lines == ("no fault is active",)


def test_quit_closes_the_cluster(cluster):
    assert cluster.quit().lines == ("leaving: every fault heals",)
    assert (cluster.path / "manifest.json").exists()
    with pytest.raises(Exception, match="the cluster has ended: it was closed; its trace is in "):
        cluster.status()
