"""The table of quoted outputs: which page quotes what, and the command that prints it."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from project.quote_blocks import Place, below_command, below_text
from project.quote_runs import (
    Preparation,
    acting_and_classic,
    acting_slave,
    demonstration,
    rare_loss,
    second_seed,
    short_and_long_kill,
    silent_member,
    switched_off,
)

ROOT = Path(__file__).parents[2]
RENEWS = "make quotes"
COMPARES = "tests/project/test_quoted_outputs.py"


@attrs.frozen
class Quote:
    """A block of a page with lines that a command prints."""

    page: str
    command: str
    """As a reader types it; or the code that prints it."""
    below: str = ""
    """A part of the line of prose above the block; empty: the block has the command in a line `$ COMMAND`."""
    needs: Preparation | None = None
    """What has to be there before the command."""
    is_slow: bool = False
    """Whether it is compared by `make proofs` alone, since it takes long and `make test` has something like it."""

    @property
    def name(self) -> str:
        """Of the case of a test."""
        return f"{self.page}: {self.command}" + (f", below {self.below!r}" if self.below else "")

    def place(self, page: str) -> Place:
        """Where it stands in the content of its page."""
        return below_text(page, self.below) if self.below else below_command(page, self.command)


@attrs.frozen
class Figure:
    """Figures in the prose of a page that a command prints."""

    page: str
    written: str
    """Regular expression for the page, with a group for each figure."""
    command: str
    printed: str
    """Regular expression for the output, with the same groups."""
    needs: Preparation | None = None
    is_slow: bool = False
    """As of a quote."""

    @property
    def name(self) -> str:
        """Of the case of a test."""
        return f"{self.page}: {self.written}"

    def in_page(self, page: str) -> tuple[str, ...]:
        """The figures of the page; empty: it has no such sentence."""
        return _groups(self.written, " ".join(page.split()))

    def in_output(self, output: Sequence[str]) -> tuple[str, ...]:
        """The figures of the output; empty: it has no such line."""
        return _groups(self.printed, "\n".join(output))


def _groups(pattern: str, text: str) -> tuple[str, ...]:
    found = re.search(pattern, text, re.MULTILINE)
    return () if found is None else found.groups()


@attrs.frozen
class Measured:
    """Figures of a machine, of real time or of a long study: nothing compares them; the command measures them again."""

    page: str
    text: str
    """A part of the page."""
    command: str


@attrs.frozen
class Generated:
    """A page, a part of one or a file that another module writes, and that another test compares."""

    page: str
    part: str
    command: str
    test: str


DEMO = "rmqemu demo"
_HALF_SEEN = "rmqemu why runs/half-seen-consumer-sim-seed1-1"
_ACTING = "runs/acting-slave-sim-seed1-1"

QUOTES = (
    Quote("README.md", DEMO, below="It reports the story of the run:"),
    Quote("README.md", DEMO, below="and ends with what `rmqemu analyze` prints first"),
    Quote("README.md", "rmqemu run acting-slave"),
    Quote("README.md", f"rmqemu why {_ACTING}", needs=acting_slave),
    Quote(
        "emulator/STUDY.md",
        "rmqemu compare runs/half-seen-consumer-sim-seed1-1 runs/half-seen-consumer-sim-seed2-1",
        below="Of the demonstration with seeds 1 and 2 it prints:",
        needs=second_seed,
        is_slow=True,  # the small runs are compared by `make test`
    ),
    Quote(
        "emulator/analysis/README.md",
        f"rmqemu analyze {_ACTING}",
        below="levels `full` and `findings` give the same.",
        needs=acting_slave,
    ),
    Quote("emulator/why/README.md", "rmqemu why runs/switched-off-sim-seed1-1 lag g", needs=switched_off),
    Quote("emulator/why/README.md", f"{_HALF_SEEN} consumer_ids order-processors at 200s", needs=demonstration),
    Quote(
        "emulator/why/README.md",
        f"{_HALF_SEEN} no consumer-2 in view order-processors/orders at 300s",
        needs=demonstration,
    ),
    Quote("emulator/comparison/README.md", "rmqemu compare runs/acting runs/classic", needs=acting_and_classic),
    Quote(
        "emulator/comparison/README.md",
        "rmqemu compare --all runs/small-sim-seed1-1 runs/small-sim-seed1-2",
        needs=short_and_long_kill,
    ),
    Quote(
        "emulator/campaign/README.md",
        "rmqemu compare campaigns/silent-member as-shipped sooner",
        needs=silent_member,
        is_slow=True,
    ),
    Quote(
        "emulator/notebook/README.md",
        "campaign.compare(...).sentence()",
        below="The last line prints:",
        needs=silent_member,
        is_slow=True,
    ),
    Quote(
        "emulator/statistics/README.md",
        "compare(runs, ...).sentence()",
        below="Of the campaign `silent-member` the comparison prints:",
        needs=silent_member,
        is_slow=True,
    ),
    Quote(
        "emulator/shrinking/README.md",
        "rmqemu campaign rare_loss.toml --shrink",
        below="loses messages with one of its 200 seeds, with two of eight faults:",
        needs=rare_loss,
        is_slow=True,
    ),
    Quote("emulator/STUDY.md", "cluster.views()", below="prints which nodes hold which value"),
    Quote("examples/README.md", "rmqemu up --listen 127.0.0.1:9876"),
    Quote(
        "nodes/README.md",
        f"rmqemu analyze --table special_services {_ACTING}",
        below="prints which member ran the services",
        needs=acting_slave,
    ),
    Quote("nodes/README.md", "rmqemu fidelity", below="prints them all and counts:"),
)
"""Blocks that `make quotes` writes again."""

FIGURES = (
    Figure(
        "README.md",
        r"has (\d+) scenarios and (\d+) campaigns, all in the package",
        "rmqemu examples --json | count",
        r"(\d+) scenarios, (\d+) campaigns",
    ),
    Figure(
        "examples/README.md",
        r"Views agree ([\d.]+) s after the cut is healed",
        DEMO,
        r"^ +([\d.]+) s later all views and owners agree again",
    ),
    Figure(
        "examples/README.md",
        r"which it cannot hear, some rounds allocate for (\d) members and some for (\d)",
        DEMO,
        r"and allocates for (\d) or for (\d)\.",
    ),
    Figure(
        "emulator/shrinking/README.md",
        r"loses messages with one of its 200 seeds, with (two) of (eight) faults",
        "rmqemu campaign rare_loss.toml --shrink | count",
        r"(\w+) of (\w+) faults",
        needs=rare_loss,
        is_slow=True,  # `make test` counts these faults in test_shrinking_failures.py
    ),
)
"""Figures that `make test` compares; they are changed in the page, by those who change what is printed."""

MEASURED = (
    Measured("README.md", "12 s and 244 MB with its environment", "time pip install rocketmq-emulator; du -sh .venv"),
    Measured("README.md", "170 MB of them for pyarrow", "du -sh .venv/lib/python3*/site-packages/pyarrow"),
    Measured("README.md", "adds 900 MB", "pip install 'rocketmq-emulator[spark]'; du -sh .venv"),
    Measured(
        "emulator/trace/README.md", "17,663 times in 35 s", "kill -9 of `rmqemu run acting-slave`, and rmqemu analyze"
    ),
    Measured("emulator/dataset/README.md", "3,299 rows were seen", "rmqemu watch of a live run of first_cluster.toml"),
    Measured("emulator/analysis/README.md", "162,500 such pulls in 38 s", "a real cluster of 5.3.3 brokers"),
    Measured("emulator/campaign/README.md", "Spark takes 25 to 40 CPU seconds", "time rmqemu campaign FILE --jobs 2"),
    Measured(
        "emulator/dataset/README.md", "180 MB in the same folder", "rmqemu spark archive; du -sh ~/.cache/rmqemu/spark"
    ),
    Measured("emulator/statistics/README.md", "it covers 80 to 90 % with 10 seeds", "tests/statistics"),
    Measured("nodes/README.md", "medians of 20 seeds", "make special"),
    Measured("nodes/README.md", "of 10 seeds beyond", "rmqemu campaign rollouts; rmqemu compare"),
    Measured("examples/README.md", "a minute and a half; prints what became", "mvn test -Dtest=ShopTest"),
    Measured("examples/guests/README.md", "It counts what became of each message", "python -m studies.shop"),
    Measured("examples/campaigns/who_decides.md", "campaign", "rmqemu campaign who-decides; rmqemu compare"),
    Measured("examples/campaigns/who_locks.md", "campaign", "rmqemu campaign who-locks; rmqemu compare"),
    Measured("examples/campaigns/who_survives.md", "campaign", "rmqemu campaign who-survives; rmqemu compare"),
    Measured("tests/README.md", "on two cores", "make test"),
    Measured("tests/studies/README.md", "make bench", "make bench timelines sources special kills soak many-runs"),
    Measured("CONTRIBUTING.md", "seventy seconds", "make quick"),
)
"""Figures that depend on a machine, on real time, or on programs of others."""

GENERATED = (
    Generated("notebooks/TABLES.md", "the whole page", "make tables", "tests/project/test_the_reference_of_tables.py"),
    Generated(
        "emulator/spec/REFERENCE.md",
        "the whole page",
        "make reference",
        "tests/project/test_the_reference_of_scenarios.py",
    ),
    Generated(
        "notebooks/ANALYSE_DATA.md",
        "outputs of its code",
        "make recipes",
        "tests/dataset/test_the_recipes_of_the_chapter.py",
    ),
    Generated(
        "notebooks/RECIPES.md",
        "outputs of the recipes",
        "make recipes",
        "tests/dataset/test_the_recipes_of_the_chapter.py",
    ),
    Generated("emulator/rooms.svg", "the picture", "make rooms", "tests/project/test_the_rooms_in_the_readme.py"),
    Generated("nodes/broker/rooms.svg", "the picture", "make rooms", "tests/project/test_the_rooms_in_the_readme.py"),
    Generated(
        "emulator/fidelity/ledger.json", "the whole file", "make ledger", "tests/project/test_fidelity_ledger.py"
    ),
    Generated(
        "emulator/analysis/README.md",
        "table of invariants, symptoms and limits",
        "an edit, as the test says",
        "tests/analysis/test_the_readme_of_the_analysis.py",
    ),
    Generated(
        "emulator/why/README.md", "table of questions", "an edit, as the test says", "tests/why/test_why_questions.py"
    ),
    Generated(
        "emulator/console/README.md",
        "table of verbs",
        "an edit, as the test says",
        "tests/project/test_verbs_in_the_readme.py",
    ),
    Generated(
        "faults/README.md",
        "tables of faults",
        "an edit, as the test says",
        "tests/project/test_faults_in_the_readme.py",
    ),
    Generated(
        "examples/README.md",
        "table of incidents",
        "an edit, as the test says",
        "tests/scenarios/test_controller_incidents.py",
    ),
    Generated(
        "notebooks/*.ipynb", "outputs of all cells", "make notebooks", "tests/notebooks_run/test_notebooks_run.py"
    ),
)
"""What other modules write and other tests compare."""

NO_OUTPUTS = ("[[broker]]", "[[proxy]]", "datasets/half-seen/", "[guest_limits]", '@pytest.mark.trap("M7")')
"""First lines of indented blocks that are neither commands nor outputs, but parts of files."""


def counted_examples(output: Sequence[str]) -> list[str]:
    """How many scenarios and campaigns `rmqemu examples --json` lists."""
    names = json.loads("\n".join(output))
    return [f"{len(names['run'])} scenarios, {len(names['campaign'])} campaigns"]


def counted_faults(output: Sequence[str]) -> list[str]:
    """How many faults a scenario was made smaller to, and how many it had."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    text = "\n".join(output)
    (left,), (every,) = _groups(r"a scenario of (\d+) faults", text), _groups(r"of (\d+) \[\[fault\]\]", text)
    return [f"{words[int(left)]} of {words[int(every)]} faults"]


COUNTED: dict[str, Callable[[Sequence[str]], list[str]]] = {
    "rmqemu examples --json": counted_examples,
    "rmqemu campaign rare_loss.toml --shrink": counted_faults,
}
"""Mapping command -> what counts in its output, for figures `COMMAND | count`."""
