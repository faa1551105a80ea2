"""The campaigns among the examples are what they say."""

from emulator.campaign.file import load_campaign
from emulator.spec.bundled import example


def test_the_campaign_of_the_silent_member_compares_three_choices():
    campaign = load_campaign(example("campaigns") / "silent_member.toml")
    timeouts_ms = [
        [broker.config.channel_expired_timeout for broker in variant.scenario.brokers] for variant in campaign.variants
    ]

    assert [variant.name for variant in campaign.variants] == ["as-shipped", "sooner", "sooner-and-untold"]
    assert timeouts_ms == [[120_000], [45_000], [45_000]]
    assert len(campaign.cases()) == 60


def test_the_campaign_of_the_rare_loss_has_two_hundred_seeds_and_random_faults_only():
    campaign = load_campaign(example("campaigns") / "rare_loss.toml")
    (variant,) = campaign.variants

    assert campaign.seeds == tuple(range(1, 201))
    assert (len(variant.scenario.nemeses), variant.scenario.faults.faults) == (5, ())


def test_the_campaign_of_special_messages_runs_them_with_a_way_out_without_and_without_rip32():
    campaign = load_campaign(example("campaigns") / "special_messages.toml")
    options = {
        variant.name: dict.fromkeys(
            (broker.config.enable_slave_acting_master, broker.config.enable_remote_escape)
            for broker in variant.scenario.brokers
        )
        for variant in campaign.variants
    }

    assert {name: list(pairs) for name, pairs in options.items()} == {
        "escape-on": [(True, True)],
        "escape-off": [(True, False)],
        "classic": [(False, False)],
    }
    assert len(campaign.cases()) == 60


def test_the_campaign_of_the_half_seen_consumer_compares_two_choices():
    campaign = load_campaign(example("campaigns") / "half_seen_consumer.toml")
    timeouts_ms = {
        variant.name: {broker.config.channel_expired_timeout for broker in variant.scenario.brokers}
        for variant in campaign.variants
    }

    assert timeouts_ms == {"as-shipped": {120_000}, "sooner": {45_000}}
    assert len(campaign.cases()) == 24
