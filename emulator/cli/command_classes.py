"""How the commands of `rmqemu` take their words: short complaints, and `--exec` with all words behind it."""

import shlex
from typing import Any

from typer.core import TyperCommand, TyperGroup

from emulator.base.text import shown_ends

EXEC = "--exec"


class Commands(TyperGroup):
    """All commands; a complaint about an argument shows no more of it than is needed."""

    def invoke(self, ctx) -> Any:  # type: ignore[no-untyped-def]  # noqa: ANN001 - click's
        """Invoke the command."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            message = getattr(error, "message", None)  # click's errors have one
            if isinstance(message, str):
                error.message = shown_ends(message)  # type: ignore[attr-defined]
            raise


class ExecCommand(TyperCommand):
    """A command whose option `--exec` takes all words behind it, those that look like options included."""

    def parse_args(self, ctx, args: list[str]) -> list[str]:  # type: ignore[no-untyped-def]  # noqa: ANN001 - click's
        """Join the words behind `--exec` into one."""
        if EXEC in args:
            at = args.index(EXEC)
            words = args[at + 1 :]
            args = [*args[: at + 1], shlex.join(words)] if words else args
        return super().parse_args(ctx, args)
