"""HTML and text of a cluster, its views, faults, owners and their history."""

import re
from html.parser import HTMLParser

import attrs
import pytest

import emulator
from emulator.notebook.html import VerbOutput
from emulator.notebook.owners import history_output
from emulator.state.live import LiveState
from emulator.trace.schema import LIFECYCLE, OWNERSHIP
from support.small_cluster import launched, scenario


class Cells(HTMLParser):
    """The rows of all tables, as texts; an element that is not closed where it should be is an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        if tag != "br":
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "td" in self._open or "th" in self._open:
            self.rows[-1][-1] += data


@pytest.fixture
def cluster(tmp_path):
    with launched(tmp_path) as launched_cluster:
        launched_cluster.advance(20_000)
        yield launched_cluster


def html(shown) -> str:
    return shown._repr_mimebundle_()["text/html"]


def row(rows, *begin):
    return next(cells for cells in rows if tuple(cells[: len(begin)]) == begin)


def test_a_cluster_shows_its_nodes_by_role_and_that_all_agree(cluster):
    rows = Cells(html(cluster)).rows
    assert row(rows, "nameservers")[1] == "ns-1ns-2"
    assert row(rows, "consumers")[1] == "c1c2"
    assert "agree about everything they share" in html(cluster)
    assert html(cluster) == html(cluster.status)


def test_agreement_is_a_quiet_mark_and_disagreement_a_letter_for_each_value(cluster):
    calm = Cells(html(cluster.views)).rows
    names = list(cluster._engine.session.cluster.hosts)
    head = calm[0]
    assert head == ["belief", "about", *names, "what they hold"]
    members = row(calm, "consumer_ids", "g")
    assert members[head.index("broker-a")] == "✓"
    assert members[-1] == "2 members: c1 c2"
    assert re.search(r">[A-Z]</span>", html(cluster.views)) is None

    cluster.cut("broker-a", "c1", "one-way")
    cluster.loss(40)
    cluster.advance(150_000)
    torn = Cells(html(cluster.views())).rows
    letters = [cells for cells in torn[1:] if set(cells[2:-1]) & {"A", "B"}]
    answer = {line.split()[-1] for line in cluster.status().lines if line.startswith("they differ")}
    assert {cells[1] for cells in letters} == answer & {cells[1] for cells in torn[1:]}  # system topics are not shown
    assert answer, "a fault that tears nothing apart tests nothing"


def test_views_of_one_subject_show_that_subject_only(cluster):
    rows = Cells(html(cluster.views("g"))).rows
    assert {cells[1] for cells in rows[1:]} == {"g"}


def test_faults_are_a_table_and_gone_when_they_are_healed(cluster):
    cluster.cut("c1", "broker-a")
    assert Cells(html(cluster.faults)).rows[1] == ["cut-1", "cut c1 <-> broker-a", "20.000 s"]
    assert "cut-1" in html(cluster)
    cluster.heal("all")
    assert "no fault is active" in html(cluster.faults)


def test_what_is_down_is_said_in_words_too(cluster):
    cluster.kill("c1")
    assert "c1down" in row(Cells(html(cluster)).rows, "consumers")[1].replace(" ", "")


def test_owners_are_notified_queue_by_queue(cluster):
    reported = cluster.ownership
    assert reported.lines[:2] == ("orders (group g)", "  broker-a: q0 c1, q1 c1, q2 c2, q3 c2")
    assert reported.lines[-1] == "no queue has two owners or more, no queue has none"
    cluster.kill("c1")
    assert "no owner" in str(cluster.ownership)
    assert "no owner" in html(cluster.ownership)
    Cells(html(cluster.ownership))


def test_two_owners_and_none_are_severe():
    state = LiveState(scenario())
    book = state.owners
    queue = next(iter(book.owners()))
    for t_ns, node in ((1_000, "c1"), (2_000, "c2")):
        note(book, OWNERSHIP, t_ns=t_ns, node=node, event="acquired", **attrs.asdict(queue))
    from emulator.notebook.owners import ownership_output

    reported = ownership_output(book, ("c1", "c2"))
    assert f"q{queue.queue_id} c1 and c2" in str(reported)
    assert reported.lines[-1].startswith("1 queue has two owners or more, ")
    assert reported.html.count("border:2px solid") == 1
    note(book, LIFECYCLE, t_ns=3_000, node="c1", event="killed")
    assert book.owners()[queue] == ("c2",)
    assert [(span.start_ns, span.owners) for span in book.history(queue)] == [
        (1_000, ("c1",)),
        (2_000, ("c1", "c2")),
        (3_000, ("c2",)),
    ]
    drawn = history_output(state, ("c1", "c2"), 4_000)
    assert "c1 and c2 from 0.0 s" in str(drawn)
    assert drawn.html.count("<title>") == 3


def note(book, table, **fields):
    book.note(table, tuple(fields.get(column.name, 0 if column.type == "int64" else "") for column in table.columns))


def test_the_history_has_a_bar_for_each_span_of_owners_and_the_faults_above(cluster):
    assert "no consumer has owned" not in str(cluster.history)
    cluster.kill("c1")
    cluster.advance(30_000)
    drawn = html(cluster.history)
    assert "kill c1" in drawn
    Cells(drawn)
    assert drawn.count("<title>") == sum(len(line.split(": ")[1].split(", ")) for line in cluster.history.lines)


def test_before_anything_has_happened_everything_can_be_shown(tmp_path):
    with launched(tmp_path) as cluster:
        for shown in (cluster, cluster.status, cluster.faults, cluster.views, cluster.ownership):
            Cells(html(shown))
        assert cluster.history.lines == ("no consumer has owned a queue yet",)


def test_what_a_scenario_calls_its_things_is_escaped(tmp_path):
    base = scenario()
    names = ("<b>c1", 'T&"<script>')
    nasty = attrs.evolve(base, consumers=(attrs.evolve(base.consumers[0], names=names),), producers=())
    with emulator.launch(nasty, runs=tmp_path) as cluster:
        cluster.advance(10_000)
        cluster.kill("<b>c1")
        for shown in (html(cluster), html(cluster.views()), html(cluster.ownership)):
            assert "<script>" not in shown
            assert "<b>" not in shown
            Cells(shown)
        assert "T&amp;" in html(cluster.ownership)
    assert "&lt;" in VerbOutput(("<b>",))._repr_html_()
