"""Campaign files: TOML with tables `[campaign]`, `[[variant]]`, and `[[condition]]`, which all variants meet.

A table `[service]` has the limits of the service verdict of all variants; they replace those of the scenario.

`examples/campaigns/silent_member.toml` shows the format. The scenario is a file of its own, or its tables stand in the
campaign file.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from emulator.campaign.campaign import BASELINE, TIMEOUT_MS, Campaign, Keep, Variant
from emulator.campaign.seeds import read_seeds
from emulator.campaign.variants import CONDITION_KEYS, VARIANT_KEYS, read_variant, under_condition
from emulator.spec import Scenario, SpecError
from emulator.spec.bundled import campaign_path
from emulator.spec.code.user_code import UserCode
from emulator.spec.model.service_limits import ServiceLimits
from emulator.spec.reading.file import SCENARIO_TABLES, playable
from emulator.spec.reading.toml_file import TomlFile
from emulator.spec.tables.bounds import SCENARIO_NAME
from emulator.spec.tables.mistakes import EnoughMistakesError, Reading, require_known
from emulator.spec.tables.section import Section, keys_of
from emulator.trace.schema import TraceLevel
from nodes.fields import TEXT, quoted, whole_rule

_CAMPAIGN_KEYS = ("name", "scenario", "seeds", "baseline", "keep", "trace", "timeout_s", "timeout_ms", "jobs")
_TABLES = ("campaign", "variant", "condition", *SCENARIO_TABLES)
CASES_MAX = 10_000_000
JOBS = whole_rule("runs at the same time", minimum=1, maximum=10_000)


def load_campaign(path: Path, *, allow_code: bool = False) -> Campaign:
    """Read a campaign file, given by its path or by the name of one of the package.

    Args:
        path: of the file, or its name.
        allow_code: whether its scenarios may run code that they name, of modules next to their file; else only below a
            folder that the user trusts.

    Raises:
        SpecError: the file or that of its scenario cannot be read, or describes no campaign.
    """
    found = campaign_path(path)
    file, reading = TomlFile.read(found), Reading()
    code = UserCode.next_to(found, allow=allow_code)
    try:
        with suppress(EnoughMistakesError):
            campaign = _read(Section.of("", file.tables, _TABLES, reading), file, code)
            if campaign is not None and not reading.mistakes:
                return campaign
        raise SpecError.of(reading.mistakes)
    except SpecError as error:
        raise file.located(error) from None


def campaign_of(scenario: Scenario, seeds: tuple[int, ...], level: str = TraceLevel.FINDINGS) -> Campaign:
    """The campaign of one scenario as it stands; it is called as the scenario.

    Args:
        scenario: to run.
        seeds: to run it with.
        level: of the traces.

    Raises:
        SpecError: the scenario has guests, which live in real time, or oracles cannot judge such traces.
    """
    _refuse_guests(scenario)
    variant = Variant(BASELINE, scenario)
    return Campaign(name=scenario.name, variants=(variant,), seeds=seeds, level=_judged_level("--trace", level))


def _read(root: Section, file: TomlFile, code: UserCode) -> Campaign | None:
    """The campaign; None where a mistake leaves none."""
    if "campaign" not in root.values:
        raise SpecError(
            "campaign", "missing; expected a table with name and seeds; rmqemu run --seeds runs a scenario alone"
        )
    head = root.table("campaign", _CAMPAIGN_KEYS)
    service = root.table("service", keys_of(ServiceLimits))
    limits = service.build(ServiceLimits)
    name = head.attempt(lambda: head.get("name", SCENARIO_NAME), "")
    seeds = head.attempt(lambda: read_seeds(head.at("seeds"), head.values.get("seeds", "")), ())
    keep = head.attempt(lambda: _read_keep(head), Keep.FAILURES)
    timeout_ms = head.attempt(lambda: head.span_ms("timeout"), None)
    if timeout_ms == 0:
        head.add(SpecError(head.at("timeout_s"), "expected more than 0 seconds"))
    level = head.attempt(
        lambda: _judged_level(head.at("trace"), head.get("trace", TEXT, TraceLevel.FINDINGS)), TraceLevel.FINDINGS
    )
    jobs = head.get("jobs", JOBS, None)
    found = root.attempt(lambda: _read_scenario(root, head, file, code), None)
    if found is None:
        return None
    tables, scenario = _with_limits(*found, {key: getattr(limits, key) for key in service.values})
    variants = _in_conditions(root, _read_variants(root, head, tables, scenario))
    if len(seeds) * len(variants) > CASES_MAX:
        raise SpecError("campaign", f"expected {CASES_MAX:,} runs at most, not {len(variants)} x {len(seeds):,}")
    return Campaign(
        name=name,
        variants=variants,
        seeds=seeds,
        keep=keep,
        level=level,
        timeout_ms=TIMEOUT_MS if timeout_ms is None else timeout_ms,
        jobs=jobs,
    )


def _read_keep(head: Section) -> Keep:
    keep = head.get("keep", TEXT, Keep.FAILURES)
    require_known(head.at("keep"), "choice", keep, list(Keep))
    return Keep(keep)


def _read_scenario(root: Section, head: Section, file: TomlFile, code: UserCode) -> tuple[Mapping[str, Any], Scenario]:
    """The tables of the scenario, and the scenario; code that variants name lies with it, too."""
    # Service limits are those of the campaign, wherever its scenario stands.
    inline = {key: root.values[key] for key in SCENARIO_TABLES if key in root.values and key != "service"}
    if "scenario" not in head.values:
        if not inline:
            raise SpecError(head.at("scenario"), "missing; expected the path of a scenario file, or its tables here")
        scenario = playable(file, inline, code=code)
        _refuse_guests(scenario)
        return inline, scenario
    if inline:
        there = next(iter(inline))
        raise SpecError(there, f"expected no tables of a scenario with {head.at('scenario')}, which names its file")
    other = TomlFile.read(Path(file.name).parent / head.get("scenario", TEXT))
    # A campaign that is not allowed to run code gets it from no other folder that the user trusts.
    scenario = playable(other, code=attrs.evolve(UserCode.next_to(Path(other.name)), is_allowed=code.is_allowed))
    _refuse_guests(scenario)
    return other.tables, scenario


def _with_limits(
    tables: Mapping[str, Any], scenario: Scenario, limits: Mapping[str, int]
) -> tuple[Mapping[str, Any], Scenario]:
    """The tables of the scenario, and the scenario, with the service limits of the campaign."""
    service = {**tables.get("service", {}), **limits}
    return {**tables, "service": service}, attrs.evolve(scenario, service=attrs.evolve(scenario.service, **limits))


def _judged_level(key: str, level: str) -> TraceLevel:
    """A level with all rows that oracles read."""
    require_known(key, "level of the traces of a campaign", level, [TraceLevel.FULL, TraceLevel.FINDINGS])
    return TraceLevel(level)


def _refuse_guests(scenario: Scenario) -> None:
    if scenario.guests:
        raise SpecError("scenario.guests", "expected none in a campaign: guests live in real time")


def _read_variants(root: Section, head: Section, tables: Mapping[str, Any], scenario: Scenario) -> tuple[Variant, ...]:
    variants = root.attempt(lambda: _baseline(head, scenario), {head.at("baseline"): Variant(BASELINE, scenario)})

    def read(section: Section) -> tuple[str, Variant]:
        variant = read_variant(section, tables, scenario)
        for at, other in variants.items():
            if other.name == variant.name:
                raise SpecError(section.at("name"), f"expected a name of its own, {variant.name} is that of {at}")
            if other.scenario == variant.scenario:
                raise SpecError(section.path, f"{variant.name} changes the same as {other.name} at {at}")
        return section.path, variant

    written = root.tables("variant", VARIANT_KEYS)
    for at, variant in root.parts(written, read):
        variants[at] = variant
    if not variants and not written:
        raise SpecError("variant", "expected tables [[variant]], for campaign.baseline is false")
    return tuple(variants.values())


def _in_conditions(root: Section, variants: tuple[Variant, ...]) -> tuple[Variant, ...]:
    """Each variant in each condition, if the campaign has any."""
    found: dict[str, Variant] = {}

    def read(section: Section) -> dict[str, Variant]:
        met: dict[str, Variant] = {}
        for variant in variants:
            made = under_condition(section, variant)
            if made.name in found:
                raise SpecError(section.at("name"), f"expected a name of its own, {made.condition} is there already")
            met[made.name] = made
        return met

    for met in root.parts(root.tables("condition", CONDITION_KEYS), read):
        found |= met
    return tuple(found.values()) or variants


def _baseline(head: Section, scenario: Scenario) -> dict[str, Variant]:
    """Mapping key in the file -> the scenario as it stands; empty if the campaign leaves it out."""
    value = head.values.get("baseline", BASELINE)
    if value is False:
        return {}
    if not SCENARIO_NAME.holds(value):
        raise SpecError(head.at("baseline"), f"expected {SCENARIO_NAME.expected}, or false, not {quoted(value)}")
    return {head.at("baseline"): Variant(value, scenario)}
