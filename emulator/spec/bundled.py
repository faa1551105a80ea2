"""The scenarios and campaigns that come with the package: each has a name, `half-seen-consumer`, that stands for it."""

import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import attrs

from emulator.base.text import alike
from emulator.spec.tables.mistakes import SpecError

_CAMPAIGNS = "campaigns"
_NEAR_MAX = 3


@attrs.frozen
class BundledFile:
    """A scenario or a campaign of the package."""

    name: str
    path: Path

    @property
    def about(self) -> str:
        """The first sentence of the comment with which the file begins."""
        lines: list[str] = []
        for line in self.path.read_text("utf-8").splitlines():
            text = line.removeprefix("#").strip()
            if not line.startswith("#") or not text:
                break
            lines.append(text)
            if text.endswith((".", "?")):
                break
        answer = " ".join(lines)
        end = next((answer.find(mark) for mark in (". ", "? ") if mark in answer), len(answer) - 1)
        return answer[: end + 1]


def example(name: str) -> Path:
    """The path of a file or folder among the examples, whether the package is installed or not."""
    package = Path(str(files("emulator")))
    installed = package / "scenarios" / name
    return installed if installed.exists() else package.parent / "examples" / name


@cache
def bundled_scenarios() -> Mapping[str, BundledFile]:
    """Mapping name -> scenario of the package, sorted by name."""
    folder = example("")
    paths = (path for path in folder.rglob("*.toml") if path.relative_to(folder).parts[0] != _CAMPAIGNS)
    return _by_name(paths)


@cache
def bundled_campaigns() -> Mapping[str, BundledFile]:
    """Mapping name -> campaign of the package, sorted by name."""
    return _by_name(example(_CAMPAIGNS).glob("*.toml"))


def scenario_path(spec: str | Path) -> Path:
    """The file of a scenario, given by its path or by the name of one of the package.

    Raises:
        SpecError: it can only be a name, and nothing of the package has it.
    """
    if not Path(spec).is_file() and str(spec) in bundled_campaigns() and str(spec) not in bundled_scenarios():
        raise SpecError("file", campaign_advice(str(spec)), str(spec))
    return _path(spec, "scenario", bundled_scenarios())


def campaign_advice(spec: str) -> str:
    """What to do with a campaign file where a scenario was expected."""
    word = shlex.quote(spec)
    return f"this is a campaign file: rmqemu campaign {word} runs it, rmqemu check {word} checks it"


def bundled_path(name: str) -> Path:
    """The file of a scenario or a campaign of the package.

    Raises:
        SpecError: nothing of the package has this name.
    """
    is_campaign = _name(name) in bundled_campaigns().keys() - bundled_scenarios().keys()
    return campaign_path(name) if is_campaign else scenario_path(name)


def campaign_path(spec: str | Path) -> Path:
    """The file of a campaign, given by its path or by the name of one of the package.

    Raises:
        SpecError: it can only be a name, and nothing of the package has it.
    """
    return _path(spec, "campaign", bundled_campaigns())


def _path(spec: str | Path, subject: str, known: Mapping[str, BundledFile]) -> Path:
    path = Path(spec)
    if path.suffix or len(path.parts) != 1 or path.is_file():
        return path
    found = known.get(_name(path.name))
    if found is None:
        near = alike(path.name, tuple(known), _NEAR_MAX)
        hint = f"did you mean {' or '.join(near)}?" if near else "`rmqemu examples` lists them"
        raise SpecError(
            "file", f"there is no such file, and no {subject} of the package of that name; {hint}", path.name
        )
    return found.path


def _by_name(paths: Iterable[Path]) -> Mapping[str, BundledFile]:
    found = {_name(path.stem): path for path in sorted(paths)}
    return {name: BundledFile(name, found[name]) for name in sorted(found)}


def _name(stem: str) -> str:
    return stem.replace("_", "-")
