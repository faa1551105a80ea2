"""Campaign files: TOML with tables `[campaign]`, `[[variant]]`, and `[[condition]]`, which all variants meet.

`examples/campaigns/silent_member.toml` shows the format. The scenario is a file of its own, or its tables stand in the
campaign file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emulator.campaign.campaign import BASELINE, TIMEOUT_MS, Campaign, Keep, Variant
from emulator.campaign.seeds import read_seeds
from emulator.campaign.variants import CONDITION_KEYS, VARIANT_KEYS, read_variant, under_condition
from emulator.spec import Scenario, SpecError
from emulator.spec.bounds import SCENARIO_NAME
from emulator.spec.file import SCENARIO_TABLES, playable, read_tables
from emulator.spec.section import Section, expect_known
from emulator.trace.schema import TraceLevel
from nodes.fields import TEXT, quoted, whole_rule

_CAMPAIGN_KEYS = ("name", "scenario", "seeds", "baseline", "keep", "trace", "timeout_s", "timeout_ms", "jobs")
CASES_MOST = 10_000_000
JOBS = whole_rule("runs at the same time", least=1, most=10_000)


def load_campaign(path: Path) -> Campaign:
    """Read a campaign file.

    Raises:
        SpecError: the file or that of its scenario cannot be read, or describes no campaign.
    """
    try:
        return _read(path)
    except SpecError as error:
        raise (error if error.source else error.within(str(path))) from None


def campaign_of(scenario: Scenario, seeds: tuple[int, ...], level: str = TraceLevel.FINDINGS) -> Campaign:
    """The campaign of one scenario as it stands; it is called as the scenario.

    Args:
        scenario: to play.
        seeds: to play it with.
        level: of the traces.

    Raises:
        SpecError: the scenario has guests, which live in real time, or oracles cannot judge such traces.
    """
    _refuse_guests(scenario)
    variant = Variant(BASELINE, scenario)
    return Campaign(name=scenario.name, variants=(variant,), seeds=seeds, level=_judged_level("--trace", level))


def _read(path: Path) -> Campaign:
    root = Section.of("", read_tables(path), ("campaign", "variant", "condition", *SCENARIO_TABLES))
    if "campaign" not in root.values:
        raise SpecError(
            "campaign", "missing; expected a table with name and seeds; rmqemu run --seeds plays a scenario alone"
        )
    head = root.table("campaign", _CAMPAIGN_KEYS)
    name = head.get("name", SCENARIO_NAME)
    seeds = read_seeds(head.at("seeds"), head.values.get("seeds", ""))
    tables, scenario = _read_scenario(root, head, path)
    variants = _in_conditions(root, _read_variants(root, head, tables, scenario))
    if len(seeds) * len(variants) > CASES_MOST:
        raise SpecError("campaign", f"expected {CASES_MOST:,} runs at most, not {len(variants)} x {len(seeds):,}")
    keep = head.get("keep", TEXT, Keep.FAILURES)
    expect_known(head.at("keep"), "choice", keep, list(Keep))
    timeout_ms = head.span_ms("timeout")
    if timeout_ms == 0:
        raise SpecError(head.at("timeout_s"), "expected more than 0 seconds")
    return Campaign(
        name=name,
        variants=variants,
        seeds=seeds,
        keep=Keep(keep),
        level=_judged_level(head.at("trace"), head.get("trace", TEXT, TraceLevel.FINDINGS)),
        timeout_ms=TIMEOUT_MS if timeout_ms is None else timeout_ms,
        jobs=head.get("jobs", JOBS, None),
    )


def _read_scenario(root: Section, head: Section, path: Path) -> tuple[Mapping[str, Any], Scenario]:
    """The tables of the scenario, and the scenario."""
    inline = {key: root.values[key] for key in SCENARIO_TABLES if key in root.values}
    if "scenario" not in head.values:
        if not inline:
            raise SpecError(head.at("scenario"), "missing; expected the path of a scenario file, or its tables here")
        scenario = playable(inline, str(path))
        _refuse_guests(scenario)
        return inline, scenario
    if inline:
        there = next(iter(inline))
        raise SpecError(there, f"expected no tables of a scenario beside {head.at('scenario')}, which names its file")
    place = path.parent / head.get("scenario", TEXT)
    tables = read_tables(place)
    scenario = playable(tables, str(place))
    _refuse_guests(scenario)
    return tables, scenario


def _judged_level(key: str, level: str) -> TraceLevel:
    """A level with all rows that oracles read."""
    expect_known(key, "level of the traces of a campaign", level, [TraceLevel.FULL, TraceLevel.FINDINGS])
    return TraceLevel(level)


def _refuse_guests(scenario: Scenario) -> None:
    if scenario.guests:
        raise SpecError("scenario.guests", "expected none in a campaign: guests live in real time")


def _read_variants(root: Section, head: Section, tables: Mapping[str, Any], scenario: Scenario) -> tuple[Variant, ...]:
    variants = _baseline(head, scenario)
    for section in root.tables("variant", VARIANT_KEYS):
        variant = read_variant(section, tables, scenario)
        for at, other in variants.items():
            if other.name == variant.name:
                raise SpecError(section.at("name"), f"expected a name of its own, {variant.name} is that of {at}")
            if other.scenario == variant.scenario:
                raise SpecError(section.path, f"{variant.name} changes the same as {other.name} at {at}")
        variants[section.path] = variant
    if not variants:
        raise SpecError("variant", "expected tables [[variant]], for campaign.baseline is false")
    return tuple(variants.values())


def _in_conditions(root: Section, variants: tuple[Variant, ...]) -> tuple[Variant, ...]:
    """Each variant in each condition, if the campaign has any."""
    found: dict[str, Variant] = {}
    for section in root.tables("condition", CONDITION_KEYS):
        for variant in variants:
            made = under_condition(section, variant)
            if made.name in found:
                raise SpecError(section.at("name"), f"expected a name of its own, {made.condition} is there already")
            found[made.name] = made
    return tuple(found.values()) or variants


def _baseline(head: Section, scenario: Scenario) -> dict[str, Variant]:
    """Mapping key in the file -> the scenario as it stands; empty if the campaign leaves it out."""
    value = head.values.get("baseline", BASELINE)
    if value is False:
        return {}
    if not SCENARIO_NAME.holds(value):
        raise SpecError(head.at("baseline"), f"expected {SCENARIO_NAME.expected}, or false, not {quoted(value)}")
    return {head.at("baseline"): Variant(value, scenario)}
