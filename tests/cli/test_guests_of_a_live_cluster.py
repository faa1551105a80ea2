"""`rmqemu up`: a program that speaks RocketMQ's own framing finds the cluster, sends, and pulls what it has sent."""

import signal
import socket
from pathlib import Path

import pytest

from emulator.guests.remoting.body_json import decode_json_body
from emulator.guests.remoting.message_binary import decode_messages
from emulator.guests.remoting.remoting_command import LanguageCode, RemotingCommand, RemotingDecoder, encode_remoting
from nodes.protocol.model import TopicRouteData
from support.free_ports import free_ports
from support.rmqemu_process import rmqemu, started

GUESTS = Path(__file__).parents[2] / "examples" / "guests.toml"
PROXIES = GUESTS.parent / "guests" / "proxies.toml"
PATIENCE_S = 20


class Program:
    """Asks one thing after the other, each over a connection of its own."""

    def ask(self, address, code, fields, body=None):
        ip, port = address.split(":")
        decoder = RemotingDecoder()
        with socket.create_connection((ip, int(port)), PATIENCE_S) as sock:
            sock.sendall(encode_remoting(RemotingCommand(code, LanguageCode.JAVA, 479, 1, 0, None, fields, body)))
            while (answer := decoder.next()) is None:
                chunk = sock.recv(65_536)
                assert chunk, "the connection was closed"
                decoder.take(chunk)
        return answer


@pytest.fixture(scope="module")
def namesrv_addr(tmp_path_factory):
    process = started("up", GUESTS, cwd=tmp_path_factory.mktemp("guests"))
    address = next(line for line in process.stdout if line.startswith("namesrvAddr=")).strip().partition("=")[2]
    yield address
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)


def test_the_address_is_printed_on_a_line_of_its_own_once_all_brokers_are_there(namesrv_addr):
    answer = Program().ask(namesrv_addr, 105, {"topic": "TBW102"})

    route = decode_json_body(TopicRouteData, answer.body)
    assert sorted(data.broker_name for data in route.broker_datas) == ["broker-a", "broker-b", "broker-c"]
    assert {data.cluster for data in route.broker_datas} == {"DefaultCluster"}


def test_a_message_for_a_topic_that_no_one_made_comes_back_from_the_broker_that_took_it(namesrv_addr):
    program = Program()
    route = decode_json_body(TopicRouteData, program.ask(namesrv_addr, 105, {"topic": "TBW102"}).body)
    broker = route.broker_datas[0].broker_addrs[0]
    send = dict(zip("abcdefghi", ["p", "news", "TBW102", "4", "0", "0", "1", "0", "TAGS\x01x\x02"], strict=True))
    sent = program.ask(broker, 310, send, b"hello")
    pull = {
        "consumerGroup": "g",
        "topic": "news",
        "queueId": "0",
        "queueOffset": "0",
        "maxMsgNums": "32",
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subVersion": "0",
        "subscription": "*",
    }
    pulled = program.ask(broker, 11, pull)

    assert (sent.code, sent.ext_fields["queueOffset"]) == (0, "0")
    assert {"suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset"} <= pulled.ext_fields.keys()
    (message,) = decode_messages(pulled.body)
    assert (message.topic, message.body, message.properties["TAGS"]) == ("news", b"hello", "x")
    assert message.store_host == broker
    again = decode_json_body(TopicRouteData, program.ask(namesrv_addr, 105, {"topic": "news"}).body)
    assert [(q.broker_name, q.read_queue_nums) for q in again.queue_datas] == [(route.broker_datas[0].broker_name, 4)]


def test_a_broker_whose_log_is_full_deletes_its_oldest_messages_and_says_so_first(tmp_path):
    process = started("up", GUESTS, "--store-max", "16kB", cwd=tmp_path)
    lines = iter(process.stdout)
    address = next(line for line in lines if line.startswith("namesrvAddr=")).strip().partition("=")[2]
    program = Program()
    route = decode_json_body(TopicRouteData, program.ask(address, 105, {"topic": "TBW102"}).body)
    broker = route.broker_datas[0].broker_addrs[0]
    header = dict(zip("abcdefghijk", ["p", "t", "TBW102", "4", "0", "0", "0", "0", "", "0", "false"], strict=True))
    for _ in range(40):
        assert program.ask(broker, 310, header, b"x" * 900).code == 0

    assert program.ask(broker, 31, {"topic": "t", "queueId": "0"}).ext_fields == {"offset": "25"}

    process.send_signal(signal.SIGINT)
    reported = [
        line.split()[2] for line in process.communicate(timeout=PATIENCE_S)[0].splitlines() if " store_" in line
    ]
    assert reported == ["store_nearly_full", "store_full"]


def printed_until(process, beginning):
    """(lines until one that begins so, what it complains of until it was interrupted)."""
    lines = []
    while not lines or not lines[-1].startswith(beginning):
        lines.append(process.stdout.readline().rstrip())
        assert lines[-1], process.stderr.read()
    process.send_signal(signal.SIGINT)
    return lines, process.communicate(timeout=PATIENCE_S)[1]


def test_one_address_for_all_nodes_is_printed_as_a_table_and_others_who_reach_it_are_warned_of(tmp_path):
    first = free_ports(13, "0.0.0.0")
    process = started("up", GUESTS, "--listen", f"0.0.0.0:{first}", cwd=tmp_path)
    lines, answer = printed_until(process, "namesrvAddr=")

    assert lines[-6:] == [
        "HOST is whichever address of this machine a program has dialed",
        f"ns-1      HOST:{first}",
        f"broker-a  HOST:{first + 3}",
        f"broker-b  HOST:{first + 7}",
        f"broker-c  HOST:{first + 11}",
        f"namesrvAddr=127.0.0.1:{first}",
    ]
    warning = answer.splitlines()[0]
    assert warning.startswith(f"rmqemu: warning: --listen 0.0.0.0:{first}: all machines that reach this one can send, ")
    assert warning.endswith("the control socket and the dashboard stay on this machine")


def test_proxies_at_an_address_of_their_own_are_printed_as_endpoints_and_others_who_reach_them_are_warned_of(tmp_path):
    first = free_ports(2, "0.0.0.0")
    process = started("up", PROXIES, "--guest", "shop5", "--grpc", f"0.0.0.0:{first}", cwd=tmp_path)
    lines, answer = printed_until(process, "proxyNamesrvAddr=")

    *_, nameserver, proxies, remoting = lines
    assert proxies == f"endpoints=127.0.0.1:{first};127.0.0.1:{first + 1}"
    assert nameserver.endswith(".1:9876")
    assert remoting.count(":8080") == 2
    warning = answer.splitlines()[0]
    assert warning.startswith(
        f"rmqemu: warning: --grpc 0.0.0.0:{first}: all machines that reach this one can send and consume,"
    )


def test_a_port_in_use_is_one_line_and_leaves_nothing(tmp_path):
    first = free_ports(13)
    with socket.create_server(("127.0.0.1", first + 3)):
        done = rmqemu("up", GUESTS, "--listen", f"127.0.0.1:{first}", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"rmqemu: listen 127.0.0.1:{first}: port {first + 3}, for broker-a, is in use; ")
    assert list(tmp_path.iterdir()) == []
