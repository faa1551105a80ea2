"""`rmqemu why`: what led to a belief, or to who owned a queue."""

from pathlib import Path

from emulator.trace.run_directory import open_run
from emulator.why.answer import answer_of_run


def print_answer(run: Path, words: list[str]) -> None:
    """Answer a question about a run."""
    for line in answer_of_run(words, open_run(run)):
        print(line)
