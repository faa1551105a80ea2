"""What is offered next to somebody who has just broken something."""

import pytest

from emulator.web.offers import offer, offers
from faults.catalogue import fault_from_words
from faults.plan import TimedFault

NODES = ("ns-1", "broker-a", "c1", "c2")


def active(verb, *words):
    return TimedFault(f"{verb}-1", fault_from_words(verb, words), 0)


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("suspend c1", "resume c1"),
        ("kill broker-a", "start broker-a"),
        ("stop broker-a", "start broker-a"),
        ("power-off broker-a", "start broker-a"),
        ("cut c1 broker-a", "heal cut-1"),
        ("loss 20", "heal loss-1"),
        ("slow-cpu c1 100", "heal slow-cpu-1"),
        ("suspend c1, c2", "heal suspend-1"),  # to resume c1 would resume c2, too
        ("kill *", "heal kill-1"),
    ],
)
def test_the_counterpart_of_a_verb_undoes_it(answer, line):
    found = offer(active(*answer.split(" ", 2)))
    assert found["line"] == line
    assert found["text"].lower() == line


def test_a_node_has_the_offers_of_faults_that_hit_it():
    both = active("suspend", "c1,", "c2")
    found = offers([both, active("kill", "c1")], {}, NODES)
    assert {key: [item["line"] for item in of] for key, of in found.items()} == {
        "c1": ["heal suspend-1", "start c1"],
        "c2": ["heal suspend-1"],
    }


def test_a_link_has_the_offers_of_its_faults_and_so_have_its_ends():
    links = {"cut-1": {"everywhere": False, "pairs": [["c1", "broker-a"], ["broker-a", "c1"]]}}
    found = offers([active("cut", "c1", "broker-a")], links, NODES)
    assert list(found) == ["broker-a c1", "c1", "broker-a"]
    assert all([item["fault"] for item in of] == ["cut-1"] for of in found.values())


def test_a_fault_of_all_links_is_offered_for_any_two_nodes():
    links = {"loss-1": {"everywhere": True, "pairs": []}}
    assert list(offers([active("loss", "20")], links, NODES)) == ["*"]
