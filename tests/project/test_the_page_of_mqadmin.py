"""The page of mqadmin's subcommands is that of the table, which has an answer of a real cluster for each line."""

from guests.mqadmin_answers import normalised, recorded, subcommands
from guests.mqadmin_table import DIFFERENCES, SUBCOMMANDS
from project.mqadmin_page import PAGE, page


def test_the_page_is_generated_from_the_table_as_it_is():
    assert PAGE.read_text() == page(), "make reference writes it again"


def test_each_line_has_the_answer_of_a_real_cluster_and_each_difference_a_line():
    lines = [line for line, _ in SUBCOMMANDS]
    assert sorted(recorded()) == sorted(lines)
    assert sorted({line.split(" ")[0] for line in lines}) == subcommands()
    assert len(set(lines)) == len(lines)
    assert [line for line in DIFFERENCES if line not in lines] == []


def test_addresses_numbers_instants_and_stack_traces_do_not_count_and_codes_of_errors_do():
    text = (
        "10.0.0.1:9876 sent 12 in 3ms at 2026-11-27 04:22:51,881\n  at a.B(C.java:7)\nCODE: 17  DESC: V5_3_3 /tmp/x/y\n"
    )
    lines = normalised(text, nameserver="10.0.0.1:9876", broker="10.0.0.2:1", scratch="/tmp/x")
    assert lines == ["CODE: 17 DESC: V5_3_3 SCRATCH/y", "NS sent N in Nms at TIME"]
