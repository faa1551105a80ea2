"""The command line of `rmqemu check`."""

from emulator.cli.arguments import AllowCodeOption, KindOption, SpecArgument
from emulator.cli.terminal import one_line_errors


def check(spec: SpecArgument, allow_code: AllowCodeOption = False, kind: KindOption = None) -> None:
    """Warn about harmful settings that RocketMQ accepts; the emulator runs them as RocketMQ would.

    SPEC may be a campaign file, too: all its variants are checked. It may also be a configuration file of RocketMQ,
    Docker or Kubernetes: then each of its options is printed with what becomes of it in rmqemu import. Code that a file
    names is tried only where it is allowed.
    """
    with one_line_errors():
        from emulator.cli.check import check_file

        check_file(spec, allow_code=allow_code, kind=kind)
