"""What a borrowed directory may hold in place of a file: each command ends soon, in one line, and changes nothing."""

import os
import resource
import shutil
import signal
import socket
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from emulator.analysis.live.checkpoint import Checkpoint
from emulator.base.files import UnexpectedFileError
from emulator.cli.main import app
from emulator.lake.landing import land
from emulator.lake.sources import RunSource
from emulator.trace.run_directory import open_run
from emulator.trace.seals import sealed, unsealed
from lake.landed_runs import killed
from support.campaigns import SHORT, write_campaign
from support.rmqemu_process import write_small

ENDS_WITHIN_S = 20
"""Far more than refusing takes; a command that waits for ever needs a limit."""
MEMORY_MAX = 3 << 30
"""More address space than this process has by then: reading a device without an end must not fill the machine."""
_HUGE = 1 << 40


class HungError(BaseException):
    """No command may catch it."""


def fifo(path):
    os.mkfifo(path)


def endless_device(path):
    path.symlink_to("/dev/zero")


def waiting_device(path):
    path.symlink_to("/dev/tty")


def listening_socket(path):
    before = os.getcwd()  # noqa: PTH109 - addresses of sockets are short
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def folder(path):
    path.mkdir()


def dangling_link(path):
    path.symlink_to("nowhere")


def loop(path):
    path.symlink_to(path.name)


def huge_file(path):
    with path.open("wb") as file:
        file.truncate(_HUGE)


def no_text(path):
    path.write_bytes(b"\xff\xfe\x00\n" * 10)


def unreadable(path):
    path.write_bytes(b"")
    path.chmod(0)


ENTRIES = (
    fifo,
    endless_device,
    waiting_device,
    listening_socket,
    folder,
    dangling_link,
    loop,
    huge_file,
    no_text,
    unreadable,
)

JOURNAL_FILE = "trace/waiting.rows"
"""Only a run without a manifest needs one."""
RUN_FILES = (
    "manifest.json",
    "trace/index.jsonl",
    JOURNAL_FILE,
    "trace/beliefs/seg-000000.parquet",
    "trace",
    ".",
)
CAMPAIGN_FILES = ("campaign.json", "parts", "parts/part-1.jsonl", ".")
DATASET_FILES = ("dataset.json", "trace/messages", "trace/messages/part-1.parquet", ".")
"""`.` is the directory itself."""
OPENS = {
    "analyze": {
        "run": (("analyze", "--engine", "local", "RUN"), RUN_FILES),
        "runs": (("analyze", "--engine", "local", "RUN", "WHOLE"), RUN_FILES),
        "dataset": (("analyze", "DATASET"), DATASET_FILES),
    },
    "report": {
        "run": (("report", "--engine", "local", "RUN"), RUN_FILES),
        "campaign": (("report", "--engine", "local", "CAMPAIGN"), CAMPAIGN_FILES),
    },
    "why": {"run": (("why", "RUN"), RUN_FILES)},
    "verify": {"run": (("verify", "RUN"), RUN_FILES)},
    "watch": {"run": (("watch", "RUN"), RUN_FILES)},
    "compare": {
        "runs": (("compare", "--engine", "local", "RUN", "WHOLE"), RUN_FILES),
        "the second": (("compare", "--engine", "local", "WHOLE", "RUN"), RUN_FILES),
        "campaign": (("compare", "--engine", "local", "CAMPAIGN"), CAMPAIGN_FILES),
        "dataset": (("compare", "DATASET"), DATASET_FILES),
    },
    "land": {
        "run": (("land", "RUN", "--to", "NEW"), RUN_FILES),
        "dataset": (("land", "WHOLE", "--to", "DATASET"), ("dataset.json",)),
        "campaign": (("land", "CAMPAIGN", "--to", "NEW"), ("campaign.json", "landed.json")),
    },
    "shrink": {"campaign": (("shrink", "CAMPAIGN", "base:1"), ("campaign.json",))},
    "campaign": {"campaign": (("campaign", "FILE", "--campaigns", "CAMPAIGNS"), ("campaign.json",))},
    "run": {"campaign": (("run", "SCENARIO", "--seeds", "1", "--runs", "OTHERS"), ("campaign.json", "."))},
    "ctl": {"run": (("ctl", "--run", "RUN", "status"), ("ctl.sock", "."))},
}
"""Mapping command -> what it opens -> (its arguments, the entries that it reads or writes)."""
OPENS_NONE = ("check", "demo", "examples", "fidelity", "import", "options", "spark", "up", "verbs")
"""They take no directory, or make one of their own in it; for import see `test_import_command.py`."""
HEALTHY = (
    ("parts", folder),  # no run has ended
    ("parts/part-1.jsonl", no_text),  # its lines are left out, each with a line on stderr
    (".", folder),
)
TURNS = 4
"""`make test` tries a quarter of the kinds at each place, `make proofs` the others; in four turns, all come up."""


def cases():
    """Every command, entry of its directory, and kind; three in four are proofs."""
    tables = (table for opened in OPENS.values() for table in opened.values())
    places = [(arguments, file) for arguments, files in tables for file in files]
    for turn, (arguments, file) in enumerate(places):
        for number, entry in enumerate(ENTRIES):
            name = f"{' '.join(arguments)}: {file} is {entry.__name__}"
            marks = () if number % TURNS == turn % TURNS else pytest.mark.slow
            if (file, entry) not in HEALTHY:
                yield pytest.param(arguments, file, entry, id=name, marks=marks)


def test_every_command_is_in_the_table():
    assert sorted((*OPENS, *OPENS_NONE)) == sorted(get_command(app).commands)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was killed, one that ended, a campaign, and a dataset."""
    place = tmp_path_factory.mktemp("whole")
    shutil.copy(write_small(place, **SHORT), place / "SCENARIO")
    for seed, name in enumerate(("RUN", "WHOLE")):
        done = CliRunner().invoke(app, ["run", str(place / "SCENARIO"), "--seed", str(seed), "--runs", str(place)])
        Path(done.stdout.strip()).rename(place / name)
    killed(place, "KILLED")
    land([RunSource(place / "WHOLE")], place / "DATASET")
    rename_part(place / "DATASET")
    (place / "CAMPAIGNS").mkdir()
    (place / "OTHERS" / "small").mkdir(parents=True)
    write_campaign(place, **{'"1-4"': '"1"'})
    (place / "campaign.toml").rename(place / "FILE")
    done = CliRunner().invoke(app, ["campaign", str(place / "FILE"), "--campaigns", str(place / "CAMPAIGNS")])
    assert done.exit_code in (0, 1), done.output
    [part] = (place / "CAMPAIGNS" / "small-campaign" / "parts").iterdir()
    part.rename(part.with_name("part-1.jsonl"))
    return place


def rename_part(dataset):
    """Give a file of a table a name that is known."""
    [path] = (dataset / "trace" / "messages").iterdir()
    path.rename(path.with_name("part-1.parquet"))
    snapshot = dataset / "dataset.json"
    plain = unsealed(snapshot.read_bytes())
    for entry in plain["files"]:
        entry["file"] = entry["file"].replace(f"messages/{path.name}", "messages/part-1.parquet")
    snapshot.write_text(sealed(plain))


DIRECTORIES = ("RUN", "WHOLE", "KILLED", "DATASET", "CAMPAIGNS", "OTHERS")


@pytest.fixture
def there(whole, tmp_path, request):
    """What the arguments of the test name, in a folder of its own; all of it where the test has no arguments.

    Most of the time of a test would else go into copies that no command opens.
    """
    arguments = request.node.callspec.params.get("arguments") if hasattr(request.node, "callspec") else None
    left_out = () if arguments is None else [name for name in DIRECTORIES if name not in needed(arguments)]

    def at_the_top(folder, names):
        return left_out if folder == str(whole) else ()

    return shutil.copytree(whole, tmp_path / "there", symlinks=True, ignore=at_the_top)


@pytest.fixture(autouse=True)
def _no_run_is_about_to_begin(monkeypatch):
    """`watch` gives a directory that is no run some seconds to become one."""
    monkeypatch.setattr("emulator.analysis.live.following.open_watched.__defaults__", (0.0,))


def needed(arguments):
    """The arguments, the campaigns of a campaign, and the killed run, which stands for a run without a manifest."""
    held = {"CAMPAIGN": "CAMPAIGNS", "RUN": "KILLED"}
    return [*arguments, *(held[word] for word in arguments if word in held)]


def found_in(place):
    """What lies in a folder: kinds, sizes, contents."""
    found = {}
    for path in sorted(place.rglob("*")):
        state = path.lstat()
        is_small = path.is_file() and not path.is_symlink() and state.st_size < 1 << 20 and os.access(path, os.R_OK)
        found[str(path)] = (state.st_mode, path.read_bytes() if is_small else state.st_ino)
    return found


@contextmanager
def limits():
    """An end of those that wait, or read without an end."""

    def give_up(*_):
        raise HungError

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (max(MEMORY_MAX, _address_space() + MEMORY_MAX), hard))
    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, ENDS_WITHIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space():
    with open("/proc/self/statm") as file:  # noqa: PTH123 - as short as can be
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def put(place, name, file, entry):
    """Put an entry in the place of a file of a directory; returns where."""
    path = place / name if file == "." else place / name / file
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    entry(path)
    return path


def invoked(arguments, place):
    words = [str(place / word) if word.isupper() else word for word in arguments]
    with limits():
        return CliRunner().invoke(app, words)


@pytest.mark.parametrize(("arguments", "file", "entry"), list(cases()))
def test_a_hostile_entry_is_refused_in_one_line(there, arguments, file, entry):
    if entry is unreadable and os.geteuid() == 0 and file != ".":
        pytest.skip("root reads everything")
    opened = name = next(word for word in arguments if word in ("RUN", "CAMPAIGN", "CAMPAIGNS", "DATASET", "OTHERS"))
    if name == "OTHERS":
        name = "OTHERS/small"
    if "CAMPAIGN" in name:
        (there / "CAMPAIGN").symlink_to(there / "CAMPAIGNS" / "small-campaign")
        name = "CAMPAIGNS/small-campaign"
    if file == JOURNAL_FILE:
        shutil.rmtree(there / "RUN")
        (there / "KILLED").rename(there / "RUN")
    path = put(there, name, file, entry)
    before = found_in(there)
    done = invoked(arguments, there)

    lines = [line for line in done.stderr.splitlines() if line.startswith("rmqemu: ")]
    assert not isinstance(done.exception, HungError), "it waits"
    assert "Traceback" not in done.stderr
    assert "this is a bug" not in done.stderr
    assert done.exit_code == 2, done.output
    assert len(lines) == 1, done.stderr
    assert path.name in lines[0] or str(there / opened) in lines[0]
    assert found_in(there) == before, "nothing was changed"


def link_to_a_victim(path):
    path.symlink_to(path.parent / "victim")
    (path.parent / "victim").write_text("precious")


def hard_link(path):
    (path.parent / "victim").write_text("precious")
    path.hardlink_to(path.parent / "victim")


def test_nothing_is_written_into_a_file_with_two_names(there):
    put(there, "RUN", ".ownership.html.tmp", hard_link)
    done = invoked(("analyze", "--engine", "local", "RUN"), there)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].endswith("ownership.html: expected a file of its own, not a hard link")
    assert (there / "RUN" / "victim").read_text() == "precious"


WRITES = (
    (("analyze", "--engine", "local", "RUN"), "RUN/ownership.html"),
    (("analyze", "--engine", "local", "RUN"), "RUN/.ownership.html.tmp"),
    (("analyze", "--engine", "local", "--json", "RUN"), "RUN/ownership.html"),
    (("report", "--engine", "local", "RUN"), "RUN/report.html"),
    (("report", "--engine", "local", "CAMPAIGN"), "CAMPAIGNS/small-campaign/report.html"),
    (("compare", "--engine", "local", "RUN", "WHOLE"), "RUN/compared-with-WHOLE.html"),
    (("campaign", "FILE", "--campaigns", "CAMPAIGNS"), "CAMPAIGNS/small-campaign/.lock"),
    (("campaign", "FILE", "--campaigns", "CAMPAIGNS"), "CAMPAIGNS/small-campaign/scenarios/calm.toml"),
    (("campaign", "FILE", "--campaigns", "CAMPAIGNS"), "CAMPAIGNS/small-campaign/tables/outcomes.parquet"),
    (("campaign", "FILE", "--campaigns", "CAMPAIGNS"), "CAMPAIGNS/small-campaign/junit.xml"),
    (("land", "RUN", "--to", "DATASET"), "DATASET/.lock"),
    (("land", "RUN", "--to", "DATASET"), "DATASET/.dataset.json.tmp"),
)
"""(arguments, what the command writes)."""


NOT_WRITTEN = (link_to_a_victim, fifo, endless_device, listening_socket, folder, dangling_link, loop)
TURNS_OF_WRITES = 3
"""As `TURNS`: a third of the kinds at each file."""


def writes():
    """Every file that a command writes, and every kind of entry in its place; two in three are proofs."""
    for turn, (arguments, file) in enumerate(WRITES):
        for number, entry in enumerate(NOT_WRITTEN):
            marks = () if number % TURNS_OF_WRITES == turn % TURNS_OF_WRITES else pytest.mark.slow
            name = f"{' '.join(arguments)}: {file} is {entry.__name__}"
            yield pytest.param(arguments, file, entry, id=name, marks=marks)


@pytest.mark.parametrize(("arguments", "file", "entry"), list(writes()))
def test_nothing_is_written_through_a_link_or_into_a_pipe(there, arguments, file, entry):
    (there / "CAMPAIGN").symlink_to(there / "CAMPAIGNS" / "small-campaign")
    path = put(there, file.partition("/")[0], file.partition("/")[2], entry)
    before = found_in(there)[str(path)]
    done = invoked(arguments, there)

    lines = [line for line in done.stderr.splitlines() if line.startswith("rmqemu: ")]
    assert not isinstance(done.exception, HungError), "it waits"
    assert "this is a bug" not in done.stderr
    assert done.exit_code == 2, done.output
    assert len(lines) == 1, done.stderr
    assert f"/{path.name}: " in lines[0]
    assert found_in(there)[str(path)] == before
    victim = path.parent / "victim"
    assert not victim.exists() or victim.read_text() == "precious"
    assert not (path.parent / "nowhere").exists()


@pytest.mark.parametrize("entry", NOT_WRITTEN)
def test_the_lock_of_a_checkpoint_is_no_link(there, entry):
    checkpoint = Checkpoint(there / "DIR", open_run(there / "KILLED"))
    (there / "DIR").mkdir()
    entry(there / "DIR" / "lock")
    with limits(), pytest.raises(UnexpectedFileError, match="expected a regular file"):
        checkpoint.claim()
    assert not (there / "DIR" / "nowhere").exists()


ANSWERS = {
    "without an end": (1 << 31).to_bytes(4, "big"),
    "cut off": b"\x00\x00\x00\x09\x81",
    "no msgpack": b"\x00\x00\x00\x01\xc1",
    "no map": b"\x00\x00\x00\x01\x01",
    "no lines": b"\x00\x00\x00\x05\x81\xa2ok\xc3",
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=list(ANSWERS))
def test_a_socket_that_is_no_cluster_gets_one_line(tmp_path, monkeypatch, answer):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("ctl.sock")
        made.listen()

        def serve():
            connection, _ = made.accept()
            with connection:
                connection.recv(1_000)
                connection.sendall(answer)

        served = Thread(target=serve)
        served.start()
        done = invoked(("ctl", "--run", ".", "status"), tmp_path)
        served.join()

    assert done.exit_code == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "does the cluster run?" in done.stderr
    assert "this is a bug" not in done.stderr
