"""The emulated world around the nodes; `launch` starts a cluster, `watch` follows one, `traces` reads what runs left.

The packages, each of which may import those after it: `cli`, `testing`, `notebook`, `web`, `report`,
`counterfactuals`, `campaign`, `run`, `console`, `comparison`, `why`, `cluster`, `dataset`, `pipeline`, `lake`,
`analysis`, `fidelity`, `shrinking` (none of these three imports another), `state`, `machine`, `guests`, `history`,
`statistics`, `network`, `trace`, `importing`, `spec`, `acts`, `time`, `base`. All may import `faults` and `nodes`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.console.verb import VerbError as VerbError
    from emulator.notebook.handle import launch as launch
    from emulator.notebook.traces import traces as traces
    from emulator.notebook.watching import watch as watch
    from emulator.notebook.watching_runs import watch_runs as watch_runs

__all__ = ["VerbError", "launch", "traces", "watch", "watch_runs"]


def __getattr__(name: str) -> Any:
    # On demand: `import emulator` alone must stay fast.
    if name == "launch":
        from emulator.notebook.handle import launch  # noqa: PLC0415

        return launch
    if name == "VerbError":
        from emulator.console.verb import VerbError  # noqa: PLC0415

        return VerbError
    if name == "traces":
        from emulator.base.extra import require_extra  # noqa: PLC0415

        require_extra("emulator.traces")
        from emulator.notebook.traces import traces  # noqa: PLC0415

        return traces
    if name == "watch":
        from emulator.notebook.watching import watch  # noqa: PLC0415

        return watch
    if name == "watch_runs":
        from emulator.base.extra import require_extra  # noqa: PLC0415

        require_extra("emulator.watch_runs")
        from emulator.notebook.watching_runs import watch_runs  # noqa: PLC0415

        return watch_runs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
