"""Campaign files: what variants change, and one line for every mistake."""

import attrs
import pytest

from emulator.campaign.campaign import Keep
from emulator.campaign.file import load_campaign
from emulator.spec import SpecError, load
from emulator.spec.model.proxies import ConsumerMode
from support.campaigns import CAMPAIGN, write_campaign
from support.mistakes import only_mistake

HEAD = CAMPAIGN.partition("[[variant]]")[0]


def read(folder, variants="", **changes):
    return load_campaign(write_campaign(folder, HEAD + variants, **changes))


def only_variant(folder, changes, **others):
    (variant,) = read(folder, f'[[variant]]\nname = "other"\n{changes}', **others).variants[1:]
    return variant.scenario


def test_the_scenario_as_it_stands_is_a_variant(tmp_path):
    campaign = read(tmp_path)

    assert [variant.name for variant in campaign.variants] == ["baseline"]
    assert campaign.variants[0].scenario == load(tmp_path / "small.toml")
    assert (campaign.seeds, campaign.keep, campaign.timeout_ms) == ((1, 2, 3, 4), Keep.FAILURES, 300_000)


def test_the_baseline_has_another_name_or_is_left_out(tmp_path):
    calm = '[[variant]]\nname = "calm"\nleave_out = ["loss-1"]\n'
    named = read(tmp_path, f'baseline = "as-it-is"\n{calm}')
    without = read(tmp_path, f"baseline = false\n{calm}")

    assert [variant.name for variant in named.variants] == ["as-it-is", "calm"]
    assert [variant.name for variant in without.variants] == ["calm"]


def test_the_tables_of_the_scenario_may_stand_in_the_campaign_file(tmp_path):
    other = read(tmp_path)
    tables = (tmp_path / "small.toml").read_text()
    here = read(tmp_path, tables, **{'scenario = "small.toml"': ""})

    assert here == other


def test_options_are_for_a_role_or_for_nodes_and_groups(tmp_path):
    scenario = only_variant(
        tmp_path,
        """
        [variant.options.broker]
        brokerHeartbeatInterval = 500
        [variant.options.broker-b]
        brokerHeartbeatInterval = 700
        [variant.options.g]
        pollNameServerInterval = 5000
        """,
    )

    assert [spec.config.broker_heartbeat_interval for spec in scenario.brokers] == [500, 700]
    assert scenario.consumers[0].config.poll_name_server_interval == 5_000


STATEFULSET = """
[scenario]
name = "pods"
run_for_s = 60
[[nameserver]]
name = "ns-1"
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
[[consumer]]
group = "billing"
topics = ["orders"]
[[statefulset]]
name = "consumer"
group = "billing"
"""


def test_options_of_a_statefulset_are_not_those_of_the_role_whose_name_it_has(tmp_path):
    changes = """
        [variant.options.statefulset]
        partition = 5
        [variant.options.consumer]
        pollNameServerInterval = 5000
        """
    scenario = only_variant(tmp_path, changes + STATEFULSET, **{'scenario = "small.toml"': ""})

    assert scenario.statefulsets[0].config.partition == 5
    assert scenario.consumers[0].config.poll_name_server_interval == 5_000


def test_keys_of_the_tables_of_a_role_are_replaced(tmp_path):
    scenario = only_variant(tmp_path, 'tables.consumer = { mode = "pop" }\ntables.topic = { queues = 3 }')

    assert [group.mode for group in scenario.consumers] == [ConsumerMode.POP]
    assert {topic.queues for topic in scenario.topics} == {3}
    same = attrs.evolve(load(tmp_path / "small.toml"), consumers=scenario.consumers, topics=scenario.topics)
    assert scenario == same


def test_a_preset_gives_way_to_options_of_the_scenario(tmp_path):
    write_campaign(tmp_path)
    text = (tmp_path / "small.toml").read_text()
    own = text.replace('name = "broker-b"', 'name = "broker-b"\noptions = { slaveReadEnable = false }')
    (tmp_path / "own.toml").write_text(own)
    scenario = only_variant(tmp_path, 'preset = "rip32"', **{"small.toml": "own.toml"})

    assert [spec.config.slave_read_enable for spec in scenario.brokers] == [True, False]
    assert all(spec.config.support_acting_master for spec in scenario.nameservers)


def test_a_variant_changes_parts_of_the_network(tmp_path):
    base = load(write_campaign(tmp_path).parent / "small.toml").network

    assert only_variant(tmp_path, "network = { delay_ms = 9 }").network == attrs.evolve(base, delay_ms=9)


def test_faults_are_left_out_and_added_under_ids_of_their_own(tmp_path):
    scenario = only_variant(
        tmp_path,
        """
        leave_out = ["loss-1"]
        [[variant.fault]]
        kind = "loss"
        percent = 50
        at_s = 2
        [[variant.nemesis]]
        kind = "kill"
        node = "broker-b"
        every_s = 2
        min_s = 1
        """,
    )

    assert [timed.id for timed in scenario.faults.faults] == ["kill-2", "loss-3"]
    assert [nemesis.id for nemesis in scenario.nemeses] == ["nemesis-kill-1"]


OTHER = '[[variant]]\nname = "other"\n'
MISTAKES = {
    "no campaign": ("", {"[campaign]": "[scenario]"}, "campaign: missing; expected a table with name and seeds"),
    "a seed range that goes down": ("", {'"1-4"': '"4-1"'}, "campaign.seeds: expected a range that goes up"),
    "no seeds": ("", {'seeds = "1-4"': ""}, "campaign.seeds: expected at least one seed"),
    "no name": ("", {'name = "small-campaign"': ""}, "campaign.name: missing; expected a name of up to"),
    "a name that is a path": ("", {"small-campaign": "../x"}, "campaign.name: expected a name of up to"),
    "an unknown key": ("seed = 3", {}, 'campaign.seed: unknown key; did you mean "seeds"?'),
    "an unknown table": ("[varaint]", {}, 'varaint: unknown key; did you mean "variant"?'),
    "no scenario": ("", {'scenario = "small.toml"': ""}, "campaign.scenario: missing; expected the path"),
    "two scenarios": ('[[broker]]\nname = "b"', {}, "broker: expected no tables of a scenario with"),
    "a wrong keep": ('keep = "failure"', {}, 'campaign.keep: unknown choice "failure"; did you mean "failures"?'),
    "a wrong time limit": ("timeout_s = 0", {}, "campaign.timeout_s: expected more than 0 seconds"),
    "no jobs": ("jobs = 0", {}, "campaign.jobs: expected a whole number of runs at the same time from 1"),
    "a baseline that is no name": ("baseline = 3", {}, "campaign.baseline: expected a name of up to"),
    "nothing to run": ("baseline = false", {}, "variant: expected tables [[variant]], for campaign.baseline is false"),
    "nothing changed": (OTHER, {}, "variant[0]: other changes nothing: expected preset, tables, options, network"),
    "changed to what it is": (
        OTHER + "network = { delay_ms = 2 }",
        {},
        "variant[0]: other changes nothing: its changes are what the scenario says",
    ),
    "one name twice": (
        OTHER + 'leave_out = ["loss-1"]\n' + OTHER + 'leave_out = ["kill-2"]',
        {},
        "variant[1].name: expected a name of its own, other is that of variant[0]",
    ),
    "one change twice": (
        OTHER + 'leave_out = ["loss-1"]\n' + OTHER.replace("other", "same") + 'leave_out = ["loss-1"]',
        {},
        "variant[1]: same changes the same as other at variant[0]",
    ),
    "the baseline's name": (
        OTHER.replace("other", "baseline") + 'leave_out = ["loss-1"]',
        {},
        "variant[0].name: expected a name of its own, baseline is that of campaign.baseline",
    ),
    "an unknown option": (
        OTHER + "options.broker = { brokerHeartbeetInterval = 1 }",
        {},
        'variant[0].options.broker.brokerHeartbeetInterval: unknown option; did you mean "brokerHeartbeatInterval"?',
    ),
    "an option out of bounds": (
        OTHER + "options.broker = { brokerHeartbeatInterval = -1 }",
        {},
        "variant[0].options.broker.brokerHeartbeatInterval: expected a whole number of milliseconds >= 1, not -1",
    ),
    "options of no one": (
        OTHER + "options.brokr-a = {}",
        {},
        'variant[0].options.brokr-a: unknown key; did you mean "broker-a"?',
    ),
    "options that are no table": (OTHER + "options = 3", {}, "variant[0].options: expected a table, not 3"),
    "keys of a role that is not there": (
        OTHER + "tables.proxy = { name = 'p' }",
        {},
        "variant[0].tables.proxy: expected a role of the scenario, which has no proxy",
    ),
    "keys that are no table": (
        OTHER + "tables.consumer = 'pop'",
        {},
        "variant[0].tables.consumer: expected a table, not 'pop'",
    ),
    "an unknown value of a key": (
        OTHER + "tables.consumer = { mode = 'pup' }",
        {},
        "variant[0]: its scenario cannot be: consumer[0].mode: expected one of pull, pop, push5, simple, not 'pup'",
    ),
    "an unknown preset": (OTHER + 'preset = "rip31"', {}, 'variant[0].preset: unknown preset "rip31"; did you mean'),
    "a fault that is not there": (
        OTHER + 'leave_out = ["los-1"]',
        {},
        'variant[0].leave_out[0]: unknown fault "los-1"; did you mean "loss-1"?',
    ),
    "a fault of no kind": (
        OTHER + '[[variant.fault]]\nkind = "kil"\nat_s = 1',
        {},
        "variant[0].fault[0].kind: unknown",
    ),
    "an id that is taken": (
        OTHER + '[[variant.fault]]\nid = "loss-1"\nkind = "kill"\nnode = "broker-a"\nat_s = 1',
        {},
        "variant[0].fault: id: expected an id of its own, loss-1 is taken; leave_out frees an id",
    ),
    "two added faults of one id": (
        OTHER + 2 * '[[variant.fault]]\nid = "x"\nkind = "kill"\nnode = "broker-a"\nat_s = 1\n',
        {},
        "variant[0].fault[1].id: expected an id of its own, x is taken",
    ),
    "a fault on no one": (
        OTHER + '[[variant.fault]]\nkind = "kill"\nnode = "broker-z"\nat_s = 1',
        {},
        'variant[0]: its scenario cannot be: fault[2].node: unknown node "broker-z"; did you mean',
    ),
}


@pytest.mark.parametrize(("variants", "changes", "line"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_one_line_with_file_key_and_what_was_expected(tmp_path, variants, changes, line):
    with pytest.raises(SpecError) as refused:
        read(tmp_path, variants, **changes)

    assert only_mistake(refused.value).startswith(f"{tmp_path}/campaign.toml: {line}")


def test_a_mistake_of_the_scenario_names_its_file(tmp_path):
    write_campaign(tmp_path)
    (tmp_path / "wrong.toml").write_text((tmp_path / "small.toml").read_text() + "[brokr]")

    with pytest.raises(SpecError, match=r'wrong\.toml:40: brokr: unknown key; did you mean "broker"\?'):
        read(tmp_path, **{"small.toml": "wrong.toml"})
    with pytest.raises(SpecError, match=r"nowhere\.toml: file: cannot be read: "):
        read(tmp_path, **{"small.toml": "nowhere.toml"})


def test_guests_cannot_be_repeated(tmp_path):
    write_campaign(tmp_path)
    with_guests = (tmp_path / "small.toml").read_text().replace('name = "small"', 'name = "small"\nguests = ["shop"]')
    (tmp_path / "guests.toml").write_text(with_guests)

    with pytest.raises(SpecError, match=r"scenario\.guests: expected none in a campaign: guests live in real time"):
        read(tmp_path, **{"small.toml": "guests.toml"})


ACTING = """
[[admin]]
id = "grow"
do = "update-topic orders queues 8"
at_s = 2
"""


def acting(folder, variants):
    """A campaign of the small scenario with an act."""
    read(folder)
    tables = (folder / "small.toml").read_text() + ACTING
    return read(folder, tables + variants, **{'scenario = "small.toml"': ""})


def test_a_variant_leaves_acts_out_and_has_others_at_other_instants(tmp_path):
    changes = 'leave_out = ["grow"]\n[[variant.admin]]\nid = "grow"\ndo = "update-topic orders queues 4"\nat_s = 3\n'
    changes += '[[variant.admin]]\ndo = "delete-topic orders"\nat_s = 4'
    campaign = acting(tmp_path, OTHER + changes)

    baseline, other = (variant.scenario for variant in campaign.variants)
    assert [timed.describe() for timed in baseline.acts] == ["2000 ms: update-topic orders queues 8"]
    assert [(timed.id, timed.describe()) for timed in other.acts] == [
        ("grow", "3000 ms: update-topic orders queues 4"),
        ("delete-topic-3", "4000 ms: delete-topic orders"),
    ]


@pytest.mark.parametrize(
    ("table", "reported"),
    [
        ('leave_out = ["gro"]', 'variant[0].leave_out[0]: unknown fault or act "gro"; did you mean "grow"?'),
        (
            '[[variant.admin]]\nid = "grow"\ndo = "delete-topic orders"\nat_s = 3',
            "variant[0].admin[0].id: expected an id of its own, grow is taken; leave_out frees an id",
        ),
        (
            '[[variant.admin]]\ndo = "delete-topic order"\nat_s = 3',
            'variant[0]: its scenario cannot be: admin[1].topic: unknown topic "order"',
        ),
    ],
)
def test_an_act_that_cannot_be_in_a_variant_is_one_line(tmp_path, table, reported):
    with pytest.raises(SpecError) as caught:
        acting(tmp_path, OTHER + table)
    assert reported in str(caught.value)
