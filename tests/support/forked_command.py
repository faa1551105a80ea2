"""The real command, forked from a process that has imported it: most commands take less time than their imports.

Each command still has a process of its own, with its own arguments, folder, output and exit status. That all are forked
from one interpreter means that they share its hash seed; what compares hash seeds starts fresh processes.
"""

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired

_COMMANDS = (
    "main",
    "analyze",
    "campaign",
    "campaign_tables",
    "compare",
    "compare_campaign",
    "land",
    "options",
    "report",
    "run",
    "shrink",
    "up",
    "verify",
)
_PRELOADED = [*(f"emulator.cli.{name}" for name in _COMMANDS), "emulator.statistics", "pandas", "scipy.stats"]
"""What a command imports when it needs it, too: pandas and scipy take a second each, longer than most commands."""
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(_PRELOADED)


def forked(arguments, cwd, environment, timeout_s=60):
    """Run the command to its end.

    Args:
        arguments: of the command, as texts.
        cwd: its folder.
        environment: variables that it gets with those of the tests, None for one that it does not get; Python itself
            has read its own before the fork.
        timeout_s: after which it is killed.

    Returns:
        What `subprocess.run` would return, with texts.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = [Path(folder) / name for name in ("stdout", "stderr")]
        process = _forks.Process(target=_command, args=(arguments, str(cwd), environment, list(map(str, output))))
        process.start()
        process.join(timeout_s)
        if process.is_alive():
            process.kill()
            process.join()
            raise TimeoutExpired(arguments, timeout_s, *(path.read_bytes() for path in output))
        return CompletedProcess(arguments, process.exitcode, *(path.read_text() for path in output))


def _command(arguments, cwd, environment, reported):
    os.chdir(cwd)
    for name, value in environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    for number, path in enumerate(reported, start=1):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    from emulator.cli.main import app
    from emulator.cli.terminal import NAME

    sys.argv = [NAME, *arguments]
    app(prog_name=NAME)
