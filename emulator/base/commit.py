"""The commit that this package was built from: with the version and a seed it names a run.

It imports nothing of this package, since the build of the wheel runs it, too.
"""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

UNKNOWN = "unknown"
"""The commit of a package that was neither built nor run from a checkout or an archive of one."""
FILE = "commit.txt"
"""File with the commit: `git archive` fills it in, and so does the build of a wheel or of a source distribution."""
_FOLDER = Path(__file__).parent
_GIT_TIMEOUT_S = 10
_PLACEHOLDER = "$"
"""First character of the file in a checkout."""


@cache
def commit() -> str:
    """The commit of this package.

    Returns:
        40 hexadecimal digits, with `-dirty` behind them if files under version control were changed; or `unknown`.
    """
    recorded = (_FOLDER / FILE).read_text(encoding="utf-8").strip()
    return commit_of_checkout(_FOLDER.parents[1]) if recorded.startswith(_PLACEHOLDER) else recorded


def commit_of_checkout(root: Path) -> str:
    """The commit that is checked out in a directory, in the form of `commit`."""
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return UNKNOWN
    # Inside a hook of git, these variables name the repository of the hook.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = (
        git,
        "--no-optional-locks",
        "-C",
        str(root),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    )
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=_GIT_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN
    return done.stdout.strip() if done.returncode == 0 else UNKNOWN
