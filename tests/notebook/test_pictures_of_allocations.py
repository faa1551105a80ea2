"""Pictures of allocations before and after a change of members."""

from emulator.notebook.allocations import AllocationChange, allocation_pictures
from nodes.allocation.averagely import allocate_averagely
from nodes.allocation.sticky import allocate_sticky
from nodes.protocol.model import MessageQueue

QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(1, 13)]
ALL, REST = ["C1", "C2", "C3"], ["C2", "C3"]


def averagely(members):
    return {queue: cid for cid in members for queue in allocate_averagely("g", cid, QUEUES, members)}


def sticky():
    """The figures of the mission's report: twelve queues, three members, and C1 leaves."""
    before = allocate_sticky(QUEUES, ALL, {})
    return AllocationChange("STICKY", before, allocate_sticky(QUEUES, REST, before))


AVG = AllocationChange("AVG", averagely(ALL), averagely(REST))


def test_the_text_has_the_queues_of_each_member_and_marks_those_that_moved_without_need():
    assert allocation_pictures(AVG, sticky()).lines == (
        "AVG",
        "  before  C1  Q1 Q2 Q3 Q4",
        "  before  C2  Q5 Q6 Q7 Q8",
        "  before  C3  Q9 Q10 Q11 Q12",
        "  after   C2  Q1 Q2 Q3 Q4 Q5 Q6",
        "  after   C3  *Q7 *Q8 Q9 Q10 Q11 Q12",
        "STICKY",
        "  before  C1  Q1 Q4 Q7 Q10",
        "  before  C2  Q2 Q5 Q8 Q11",
        "  before  C3  Q3 Q6 Q9 Q12",
        "  after   C2  Q1 Q2 Q5 Q7 Q8 Q11",
        "  after   C3  Q3 Q4 Q6 Q9 Q10 Q12",
        "* moved, although its member stayed",
    )


def test_in_the_picture_a_queue_has_the_colour_of_the_member_that_had_it_before():
    html = allocation_pictures(AVG).html
    after_c3 = html.split("<tr>")[-1].split("<td")[3]

    def colour(name):
        return after_c3.split(f">{name}<")[0].rsplit("background:", 1)[1].split(";")[0]

    assert colour("*Q7") == colour("*Q8") != colour("Q9") == colour("Q12")
    assert "2 moved without need" in html


def test_a_member_that_is_gone_has_no_queue_after():
    rows = allocation_pictures(sticky()).html.split("<tr>")

    assert "Q1<" in rows[2]
    assert rows[2].count(">none<") == 1
    assert ">none<" not in rows[3]
    assert "0 moved without need" in rows[0]
