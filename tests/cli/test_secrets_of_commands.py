"""No secret is written or printed: a canary goes through every place that takes one, and is found nowhere later."""

import json
import stat
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.campaigns import CAMPAIGN as SMALL_CAMPAIGN
from support.campaigns import FORGETFUL, LONGER
from support.rmqemu_process import manifest_of, rmqemu, write_small

CANARY = "canary-5ea1"
OTHER = "another-5ea1"
SCENARIO = f"""
[scenario]
name = "signed"
run_for_s = 20
[nameserver]
count = 1
[[broker]]
name = "broker-a"
options = {{ aclEnable = true, knowsPlainAcl = true }}
[[topic]]
name = "orders"
[[consumer]]
group = "billing"
topics = ["orders"]
options = {{ accessKey = "rocketmq-shop", secretKey = "{CANARY}" }}
[[producer]]
name = "till"
group = "shop"
topic = "orders"
options = {{ accessKey = "rocketmq-shop", secretKey = "{CANARY}" }}
[[account]]
access_key = "rocketmq-shop"
secret_key = "{CANARY}"
admin = true
[[fault]]
kind = "reconfigure"
node = "till"
at_s = 6
for_s = 1
options = {{ accessKey = "rocketmq-shop", secretKey = "{CANARY}" }}
[[fault]]
do = "restart consumer-1 with {{accessKey = rocketmq-shop, secretKey = {CANARY}}}"
at_s = 9
for_s = 1
[[nemesis]]
kind = "reconfigure"
node = "till"
every_s = 12
min_s = 1
options = {{ secretKey = "{CANARY}" }}
"""
RUN = "runs/signed-sim-seed1-1"
CAMPAIGN = f"""
[campaign]
name = "signed"
scenario = "signed.toml"
seeds = "1"
keep = "all"
[[variant]]
name = "changed"
[variant.options]
till = {{ accessKey = "rocketmq-shop", secretKey = "{OTHER}" }}
[[variant]]
name = "restarted"
[[variant.fault]]
id = "more"
do = "upgrade till with {{secretKey = {CANARY}}} one every 2s"
at_s = 3
"""
SIGNED = f'accessKey = "rocketmq-shop", secretKey = "{CANARY}"'
RESTART = f"""
[[variant.fault]]
do = "restart consumer-1 with {{accessKey = rocketmq-shop, secretKey = {CANARY}}}"
at_s = 15
"""
SCRIPT = f"""
restart till with {{secretKey = {CANARY}}}
status
views
faults
save here.toml
run-for 2
upgrade consumer-1 with {{secretKey = {CANARY}}} one every 2s
"""


class Place:
    """A working directory, with the inputs in one of their own, and all that commands have printed there."""

    def __init__(self, folder: Path) -> None:
        self.inputs, self.path = folder / "inputs", folder / "work"
        for path in (self.inputs, self.path):
            path.mkdir()
        self.printed: list[str] = []

    def write(self, name: str, text: str) -> Path:
        (self.inputs / name).write_text(text)
        return self.inputs / name

    def do(self, *words, status=None, **environment):
        done = rmqemu(*words, cwd=self.path, **environment)
        self.printed += [done.stdout, done.stderr]
        if status is not None:
            assert done.returncode == status, done.stderr
        return done

    def found(self) -> list[str]:
        """Where a canary is."""
        printed = [text for text in self.printed if _has(text.encode())]
        files = [path for path in sorted(self.path.rglob("*")) if path.is_file() and _has(_content(path))]
        return [*printed, *(str(path.relative_to(self.path)) for path in files)]


def _has(content: bytes) -> bool:
    return any(item.encode() in content for item in (CANARY, OTHER))


def _content(path: Path) -> bytes:
    """The content of a file; that of Parquet is compressed."""
    if path.suffix != ".parquet":
        return path.read_bytes()
    return json.dumps(pq.read_table(path).to_pylist(), default=str).encode()


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A place with a run and a campaign."""
    place = Place(tmp_path_factory.mktemp("executed"))
    place.do("run", place.write("signed.toml", SCENARIO), status=0)
    place.do("campaign", place.write("campaign.toml", CAMPAIGN))
    return place


def test_what_commands_print_and_write_of_a_run_has_no_secret_and_a_run_with_masked_ones_can_be_repeated(executed):
    executed.do("check", executed.inputs / "signed.toml")
    for words in (("analyze",), ("analyze", "--all"), ("why",), ("report",), ("watch",), ("why", "till")):
        executed.do(words[0], RUN, *words[1:])
    assert executed.do("verify", RUN).stdout == "identical\n"
    executed.do("land", "runs", "--to", "dataset", status=0)

    assert executed.found() == []


def test_what_commands_print_and_write_of_a_campaign_has_no_secret(executed):
    for words in (("compare",), ("compare", "--json"), ("report",), ("verify",)):
        executed.do(words[0], "campaigns/signed", *words[1:], status=0)
    executed.do("campaign", executed.inputs / "campaign.toml")

    assert executed.found() == []


def two_runs(place):
    place.do("run", place.write("signed.toml", SCENARIO), status=0)
    place.do(
        "run", place.write("other.toml", SCENARIO.replace(f'"{CANARY}" }}\n[[account', f'"{OTHER}" }}\n[[account'))
    )
    place.do("compare", RUN, RUN.replace("-1-1", "-1-2").replace("seed1-1", "seed1-2"), status=0)


def a_shrunken_failure(place):
    write_small(place.inputs, **LONGER, **{'group = "p"': f'group = "p"\noptions = {{ {SIGNED} }}'})
    campaign = SMALL_CAMPAIGN.partition("[[variant]]")[0] + FORGETFUL + RESTART
    place.write("campaign.toml", campaign.replace('"1-4"', '"1"'))
    place.do("campaign", place.inputs / "campaign.toml")
    place.do("shrink", "campaigns/small-campaign", "forgetful:1", status=0)
    assert list(place.path.rglob("shrunk/*.toml"))


def a_script(place):
    place.do("run", place.write("signed.toml", SCENARIO), "--script", place.write("script", SCRIPT), status=0)
    assert "***" in (place.path / RUN / "by_hand.toml").read_text()


def scripts_with_mistakes(place):
    place.write("signed.toml", SCENARIO)
    for number, line in enumerate(
        (
            f"restart till with {{secretKey {CANARY}}}",
            f"restart till with {{secretKey = a,{CANARY}}}",
            f"restart till with {{secretKey = {CANARY}",
            f"restart till with {{secretKey = {CANARY}}} and more",
            f"restart no one with {{secretKey = {CANARY}}}",
            f"restart broker-a with {{secretKey = {CANARY}}}",
            f"restart till with {{secretKey = '{CANARY}\x1b'}}",
            f"restart till with {{secretKey = '{CANARY}}}",
            f"restart till with {{secretKey = {CANARY}, secret_key = {CANARY}}}",
            f"restart till with {{secretKey: {CANARY}}}",
            f"restart till secretKey = {CANARY}",
            f"kill till with {{secretKey = {CANARY}}}",
            f"upgrade till with {{secretKey = {CANARY}}} one every x",
            f"upgrade till with {{secretKey = x, {CANARY}, accessKey = y}} one every 2s",
            "restart till with {secretKey = file:/dev/null}",
        )
    ):
        script = place.write(f"script-{number}", line + "\n")
        place.do("run", place.inputs / "signed.toml", "--script", script, status=2)


def scenarios_with_mistakes(place):
    changed = '[[fault]]\nat_s = 1\nkind = "reconfigure"\nnode = "till"\n'
    right = f'secretKey = "{CANARY}" }}\n[[account]]'
    for number, wrong in enumerate(
        (
            f'secretKey = ["{CANARY}"] }}\n[[account]]',
            f'secretKey = {{ name = "{CANARY}" }} }}\n[[account]]',
            f'secretKey = {{ env = "A", file = "{CANARY}" }} }}\n[[account]]',
            f'secretkey = "{CANARY}" }}\n[[account]]',
            f'secretKey = "{CANARY}", secret_key = "{CANARY}" }}\n[[account]]',
            f'secretKey = "{CANARY}\\u0007" }}\n[[account]]',
            f'secretKey = "{CANARY * 40}" }}\n[[account]]',
            f'secretKey = "{CANARY}" \n[[account]]',
            f'secretKey = "{CANARY}" }}\n[[account]]\naccess_key = ""\nsecret_key = ["{CANARY}"]\n[[account]]',
            f'secretKey = "{CANARY}" }}\n[[fault]]\nat_s = 1\ndo = "stop till {{secretKey {CANARY}}}"\n[[account]]',
            f'secretKey = "{CANARY}" }}\n{changed}options = {{ secretKey = "{CANARY}", x = [1] }}\n[[account]]',
            f'secretKey = "{CANARY}" }}\n{changed}options = {{ secretKey = ["{CANARY}"] }}\n[[account]]',
            f'secretKey = "{CANARY}" }}\n{changed}options = "secretKey = {CANARY}"\n[[account]]',
        )
    ):
        assert right in SCENARIO
        path = place.write(f"wrong-{number}.toml", SCENARIO.replace(right, wrong))
        for command in ("check", "run") if number % 4 == 0 else ("check",):  # both read it with the same code
            place.do(command, path, status=2)


def uris_with_keys(place):
    place.do("run", place.write("signed.toml", SCENARIO), status=0)
    place.do("land", "runs", "--to", f"s3://key:{CANARY}@bucket/path", status=2)


PLACES = [
    two_runs,
    a_shrunken_failure,
    a_script,
    scripts_with_mistakes,
    scenarios_with_mistakes,
    uris_with_keys,
]


@pytest.mark.parametrize("through", PLACES, ids=[item.__name__ for item in PLACES])
def test_a_secret_is_written_and_printed_nowhere(place, through):
    through(place)

    assert place.found() == []


def referring(text=SCENARIO):
    """The scenario with references in place of the secrets."""
    text = text.replace(f'= "{CANARY}"', '= { env = "SHOP_KEY" }')
    return text.replace(f"= {CANARY}", "= env:SHOP_KEY")


def test_a_secret_from_the_environment_gives_the_same_rows(executed, place):
    digest = manifest_of(executed.path / RUN)["digest"]
    place.do("run", place.write("env.toml", referring()), status=0, SHOP_KEY=CANARY)
    run = place.path / RUN

    assert manifest_of(run)["digest"] == digest
    assert manifest_of(run)["scenario"]["account"][0]["secret_key"] == {"env": "SHOP_KEY"}
    assert place.do("verify", run).stdout == "identical\n"  # where the variable is not set
    assert place.found() == []


def test_a_secret_from_a_file_is_read_when_a_run_begins(place):
    key = place.write("key", f"{CANARY}\n")
    place.do("run", place.write("file.toml", SCENARIO.replace(f'"{CANARY}"', f'{{ file = "{key}" }}')), status=0)

    assert place.found() == []
    key.unlink()
    missing = place.do("run", place.inputs / "file.toml", status=2)
    assert missing.stderr.splitlines()[0] == (
        f"rmqemu: account[0].secret_key: a secret is missing: {key} cannot be read: No such file or directory"
    )


def test_a_variable_that_is_not_set_is_one_line_for_each_place(place):
    missing = place.do("run", place.write("env.toml", referring()), status=2)

    keys = ("account[0].secret_key", "consumer[0].options.secretKey", "producer[0].options.secretKey")
    faults = ("fault[0].options.secretKey", "fault[1].options.secretKey", "nemesis[0].options.secretKey")
    answer = "a secret is missing: the environment variable SHOP_KEY is not set"
    assert missing.stderr == "".join(f"rmqemu: {key}: {answer}\n" for key in (*keys, *faults))
    assert not (place.path / "runs").exists()


def test_a_secret_that_is_too_short_is_refused_without_it(place):
    short = place.do("run", place.write("env.toml", referring()), status=2, SHOP_KEY="abc").stderr

    assert short.startswith("rmqemu: account[0].secret_key: expected a text of 7 characters or more, or {")
    assert short.endswith("; it comes from env:SHOP_KEY\n")


def test_a_saved_scenario_says_which_secret_is_missing_and_how_to_give_it(place):
    place.do("run", place.write("signed.toml", SCENARIO), "--script", place.write("script", SCRIPT), status=0)
    saved = place.path / RUN / "by_hand.toml"
    refused = place.do("run", saved, status=2).stderr.splitlines()

    how = 'it was masked as *** when this was written: give it as { env = "NAME" } or { file = "PATH" }'
    assert refused[0] == f"rmqemu: account[0].secret_key: a secret is missing: {how}"
    assert not list((place.path / "runs").glob("*-2"))
    given = saved.read_text().replace('"***"', '{ env = "SHOP_KEY" }')
    place.do("run", place.write("given.toml", given), status=0, SHOP_KEY=CANARY)
    assert place.found() == []


def test_different_secrets_stay_different(place):
    wrong = SCENARIO.replace(f'"{CANARY}" }}\n[[account', f'"{OTHER}" }}\n[[account')
    place.do("run", place.write("signed.toml", wrong))
    run = place.path / RUN
    scenario = manifest_of(run)["scenario"]

    assert scenario["consumer"][0]["options"]["secretKey"] == "***"
    assert scenario["producer"][0]["options"]["secretKey"] == "***2"
    place.do("run", place.write("env.toml", referring(wrong).replace(f'"{OTHER}"', '{ env = "TILL_KEY" }')),
             SHOP_KEY=CANARY, TILL_KEY=CANARY)  # fmt: skip
    equal = place.path / RUN.replace("seed1-1", "seed1-2")
    assert manifest_of(equal)["secrets"] == {"env:SHOP_KEY": "***", "env:TILL_KEY": "***"}
    assert manifest_of(equal)["digest"] != manifest_of(run)["digest"]
    assert place.do("verify", equal).stdout == "identical\n"


def test_a_campaign_takes_its_secrets_from_the_environment_and_goes_on_without_writing_them(place):
    place.write("signed.toml", referring())
    campaign = place.write("campaign.toml", referring(CAMPAIGN).replace(f'"{OTHER}"', '{ env = "TILL_KEY" }'))
    assert "the environment variable SHOP_KEY is not set" in place.do("campaign", campaign, status=2).stderr
    assert not (place.path / "campaigns").exists()
    keys = {"SHOP_KEY": CANARY, "TILL_KEY": OTHER}
    place.do("campaign", campaign, **keys)
    place.do("campaign", campaign, **keys)

    assert place.do("verify", "campaigns/signed", status=0).stdout.endswith("everything belongs to the campaign\n")
    assert place.do("verify", "campaigns/signed/runs/changed-seed1").stdout == "identical\n"
    assert place.found() == []
    other = place.do("campaign", campaign, status=2, SHOP_KEY=CANARY, TILL_KEY=CANARY)
    assert "holds another campaign: secrets.changed.env:TILL_KEY is '***2' there and '***' here" in other.stderr


def test_what_a_run_and_a_campaign_leave_is_for_their_owner_alone(executed):
    place = executed
    for folder in (RUN, "campaigns/signed", "campaigns/signed/runs/changed-seed1"):
        assert _mode(place.path / folder) == 0o700
    for file in ("manifest.json", "trace/index.jsonl", "log.jsonl"):
        assert _mode(place.path / RUN / file) == 0o600
    for file in ("campaign.json", "scenarios/changed.toml", "junit.xml"):
        assert _mode(place.path / "campaigns" / "signed" / file) == 0o600


def _mode(path):
    return stat.S_IMODE(path.stat().st_mode)
