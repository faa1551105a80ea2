"""Executes what pages quote, each command once, in a folder of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import attrs

from emulator.guests.address_book import AddressBook, ListenAddress
from emulator.spec import load
from emulator.spec.bundled import example
from emulator.spec.model.addresses import node_ports
from support.forked_command import forked
from support.rmqemu_process import SMALL
from why.why_runs import busy, requested, switch_off

PROGRAM = "rmqemu "
_SECONDS_MAX = 900
"""Of a command: a campaign of twenty seeds takes minutes on a slow machine."""
Preparation = Callable[["Workshop"], None]
"""Makes files or runs that a command needs, in the folder of the workshop."""


class CommandError(Exception):
    """A quoted command failed; the text has what it printed."""


class Workshop:
    """A folder with runs, and the outputs of commands in it.

    Args:
        folder: an empty one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._outputs: dict[str, list[str]] = {}
        self._done: list[Preparation] = []

    def prepare(self, preparation: Preparation) -> None:
        """Do it, unless it was done."""
        if preparation not in self._done:
            self._done.append(preparation)
            preparation(self)

    def output(self, command: str) -> list[str]:
        """What a command prints on stdout, line by line, without spaces at the ends of lines and without this folder.

        Raises:
            CommandError: its exit status is none of a command that has done its work.
        """
        if command not in self._outputs:
            self._outputs[command] = MADE_HERE[command](self) if command in MADE_HERE else self._executed(command)
        return self._outputs[command]

    def _executed(self, command: str) -> list[str]:
        words = command.removeprefix(PROGRAM).split()
        environment = {name: None for name in os.environ if name.startswith(("RMQEMU_", "COLUMNS"))}
        # Both engines print the same, and Spark takes long to start.
        done = forked(words, self.folder, {**environment, "RMQEMU_ENGINE": "local"}, timeout_s=_SECONDS_MAX)
        if done.returncode not in (0, 1) or not done.stdout:
            raise CommandError(f"`{command}`: exit status {done.returncode}\n{done.stderr}")
        return [line.rstrip() for line in done.stdout.replace(f"{self.folder}/", "").splitlines()]


# --- what commands need -------------------------------------------------------------------


def demonstration(workshop: Workshop) -> None:
    """The run of the demonstration."""
    workshop.output("rmqemu demo")


def second_seed(workshop: Workshop) -> None:
    """The demonstration's scenario with another seed."""
    workshop.prepare(demonstration)
    workshop.output("rmqemu run half-seen-consumer --seed 2")


def acting_slave(workshop: Workshop) -> None:
    """The run in which a slave acts for its master."""
    workshop.output("rmqemu run acting-slave")


def acting_and_classic(workshop: Workshop) -> None:
    """The same with the preset `classic`; both under short names."""
    workshop.prepare(acting_slave)
    text = example("acting_slave.toml").read_text(encoding="utf-8")
    (workshop.folder / "classic.toml").write_text(text.replace('preset = "rip32"', 'preset = "classic"'))
    runs = workshop.folder / "runs"
    shutil.copytree(runs / "acting-slave-sim-seed1-1", runs / "acting")
    (run,) = workshop.output("rmqemu run classic.toml")
    (workshop.folder / run).rename(runs / "classic")


def short_and_long_kill(workshop: Workshop) -> None:
    """Two small runs that differ in how long a consumer is away."""
    for seconds in (10, 20):
        file = workshop.folder / f"away_{seconds}.toml"
        file.write_text(f"{SMALL}for_s = {seconds}\n", encoding="utf-8")
        workshop.output(f"rmqemu run {file.name}")


def switched_off(workshop: Workshop) -> None:
    """A run in which an administrator switches a group off at one broker."""
    scenario = attrs.evolve(busy(), name="switched-off")
    requested(scenario, workshop.folder / "runs", act=lambda me: switch_off(me, "broker-a"), for_s=150)


def silent_member(workshop: Workshop) -> None:
    """The campaign with twenty seeds."""
    workshop.output("rmqemu campaign silent-member")


def two_silent_members(workshop: Workshop) -> None:
    """The same with two seeds and the two variants that are compared, as the campaign `fewer`."""
    text = example("campaigns/silent_member.toml").read_text(encoding="utf-8")
    text = text.replace('seeds = "1-20"', 'seeds = "1-2"').replace('name = "silent-member"', 'name = "fewer"', 1)
    before, name, rest = text.partition('[[variant]]\nname = "sooner-and-untold"')
    after = rest.partition("[scenario]\n")
    assert name, "the example has another third variant"
    (workshop.folder / "fewer.toml").write_text(f"{before}{after[1]}{after[2]}", encoding="utf-8")
    workshop.output("rmqemu campaign fewer.toml")


def rare_loss(workshop: Workshop) -> None:
    """The campaign, with the one of its seeds that fails."""
    text = example("campaigns/rare_loss.toml").read_text(encoding="utf-8")
    (workshop.folder / "rare_loss.toml").write_text(text.replace('seeds = "1-200"', 'seeds = "179"'), encoding="utf-8")


# --- what no command prints here ----------------------------------------------------------


def _addresses(_workshop: Workshop) -> list[str]:
    """What `up --listen` prints first, without listening, since the port may be in use."""
    address = ListenAddress("127.0.0.1", 9876)
    book = AddressBook(address, ("guest",), node_ports(load("guests")))
    return [*book.lines(), f"namesrvAddr={address.host}:{address.port}"]


_FRAMES = """
import emulator
from emulator.statistics import compare, per_run

campaign = emulator.traces("campaigns/silent-member")
"""


def _compared_by_frames(workshop: Workshop) -> list[str]:
    return _printed_by('campaign.compare("orphan_s", "as-shipped", "sooner")', workshop)


def _compared_by_statistics(workshop: Workshop) -> list[str]:
    runs = 'per_run(campaign.orphans(), campaign.runs()[["variant", "seed"]], "orphan")'
    return _printed_by(f'compare({runs}, "orphan_s", "as-shipped", "sooner", phrase="queues had no owner")', workshop)


def _printed_by(comparison: str, workshop: Workshop) -> list[str]:
    """What Python code prints in a notebook, in a fresh process."""
    code = f"{_FRAMES}print({comparison}.sentence())"
    done = subprocess.run([sys.executable, "-c", code], cwd=workshop.folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def _views(workshop: Workshop) -> list[str]:
    """What the first code of the page for those who study prints, in a fresh process."""
    page = (Path(__file__).parents[2] / "emulator" / "STUDY.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=workshop.folder, capture_output=True, text=True, check=True)
    return [line.rstrip() for line in done.stdout.splitlines()]


MADE_HERE: dict[str, Callable[[Workshop], list[str]]] = {
    "rmqemu up --listen 127.0.0.1:9876": _addresses,
    "cluster.views()": _views,
    "campaign.compare(...).sentence()": _compared_by_frames,
    "compare(runs, ...).sentence()": _compared_by_statistics,
}
"""Mapping command -> what gives its output in another way."""
