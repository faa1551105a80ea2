"""Files made to hurt: each is refused in few lines, in little time and memory, and shows nothing of other files."""

import resource
import time

import pytest

from emulator.campaign.file import load_campaign
from emulator.spec import SpecError, load

HEAD = '[scenario]\nname = "x"\nrun_for_s = 60\n'
BROKER = HEAD + '[[broker]]\nname = "b"\n'
TOPIC = BROKER + '[[topic]]\nname = "t"\n'
GROUP = TOPIC + '[[consumer]]\ngroup = "g"\ntopics = ["t"]\n'
HUGE = 10**9
NUMBERS = {
    "consumers": f"{GROUP}count = {HUGE}\n",
    "brokers": f"{BROKER}replicas = {HUGE}\n",
    "nameservers": f"{TOPIC}[nameserver]\ncount = {HUGE}\n",
    "queues": f"{TOPIC}queues = {HUGE}\n",
    "rate": f'{TOPIC}[[producer]]\ngroup = "p"\ntopic = "t"\nrate_per_s = {HUGE}\n',
    "keys": f'{TOPIC}[[producer]]\ngroup = "p"\ntopic = "t"\nrate_per_s = 1\nkeys = {{ count = {HUGE} }}\n',
    "length": f"{TOPIC}".replace("60", str(HUGE)),
    "digits": TOPIC.replace("60", "9" * 5_000),
    "nemesis": f'{TOPIC}[[nemesis]]\ndo = "kill b"\nevery_ms = 1\nmin_ms = 1\n'.replace("60", "31536000"),
}
NESTED = {
    "arrays": "a = " + "[" * 100_000 + "]" * 100_000,
    "tables": "a = " + "{a=" * 50_000 + "1" + "}" * 50_000,
    "a key": ".".join(["a"] * 200_000) + " = 1",
    "a quoted key": ".".join(['"a"'] * 200_000) + " = 1",
    "a key in a table": "x = { y = 1, " + " . ".join(["a"] * 200_000) + " = 1 }",
    "a header": "[" + ".".join(["a"] * 200_000) + "]\n",
    "a header of an array": "[[" + ".".join(["a"] * 200_000) + "]]\n",
    "parentheses of a filter": f'{GROUP}expressions = {{ t = "{"(" * 3_000}a = 1{")" * 3_000}" }}\n',
    "negations of a filter": f'{GROUP}expressions = {{ t = "{"NOT " * 20_000}a = 1" }}\n',
}
PATTERNS = {
    "a list of queues": f'{GROUP}options = {{ messageQueueList = "{"a@" * 100_000}" }}\n',
    "blanks": f'{GROUP}options = {{ messageQueueList = "a@a@1{" " * 100_000}x" }}\n',
    "addresses": TOPIC.replace("60\n", f'60\nglobal_white_remote_addresses = ["{"1." * 100_000}"]\n'),
    "a restart": f'{TOPIC}[[fault]]\ndo = "restart {"b with {" * 20_000}"\nat_s = 1\n',
    "an upgrade": f'{TOPIC}[[fault]]\ndo = "upgrade {"one every " * 20_000}"\nat_s = 1\n',
    "a name": HEAD.replace('"x"', '"{0.__class__}%s%n"') + TOPIC.removeprefix(HEAD),
    "backslashes": f'{TOPIC}x = """{chr(92) + chr(34)}' * 1_000,
}
HOSTILE = NUMBERS | NESTED | PATTERNS
WITHIN_S = 5.0


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line_and_at_once(tmp_path, name):
    (tmp_path / "s.toml").write_text(HOSTILE[name])
    before_mib, begin_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, time.process_time()

    with pytest.raises(SpecError) as refused:
        load(tmp_path / "s.toml")

    assert time.process_time() - begin_s < WITHIN_S
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before_mib < 300
    (line,) = refused.value.lines
    assert line.isprintable()
    assert len(line) < 1_000


@pytest.mark.parametrize("path", ["/etc/passwd", "../" * 20 + "etc/passwd", "secrets.toml", "/dev/zero", "."])
def test_a_campaign_that_names_another_file_shows_nothing_of_it(tmp_path, path):
    (tmp_path / "secrets.toml").write_text('[login]\npassword = "hunter2"\ntoken = """root:x:0:0"""\n')
    (tmp_path / "c.toml").write_text(f'[campaign]\nname = "c"\nseeds = "1"\nscenario = "{path}"\n')

    with pytest.raises(SpecError) as refused:
        load_campaign(tmp_path / "c.toml")

    shown = "\n".join(refused.value.lines)
    assert "hunter2" not in shown
    assert "root:" not in shown


def test_a_key_of_thirty_two_parts_is_read(tmp_path):
    (tmp_path / "s.toml").write_text(".".join(["a"] * 32) + " = 1\n")

    with pytest.raises(SpecError, match="unknown"):
        load(tmp_path / "s.toml")
