"""`--exec COMMAND...`: an option that takes all that stands behind it."""

import shlex

from typer.core import TyperCommand

OPTION = "--exec"


class ExecCommand(TyperCommand):
    """Whatever stands behind `--exec` belongs to the command, options of ours included."""

    def parse_args(self, ctx, args: list[str]) -> list[str]:  # type: ignore[no-untyped-def]  # noqa: ANN001 - click's
        """Make one word of the command."""
        if OPTION in args:
            at = args.index(OPTION)
            words = args[at + 1 :]
            args = [*args[: at + 1], shlex.join(words)] if words else args
        return super().parse_args(ctx, args)
