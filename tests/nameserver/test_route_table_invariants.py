from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodes.nameserver.tables.route_table import BrokerAddress, RouteTable
from nodes.protocol.bodies import RegisterBrokerBody, TopicConfigSerializeWrapper
from nodes.protocol.headers import RegisterBrokerRequestHeader, UnregisterBrokerRequestHeader
from nodes.protocol.model import DataVersion, TopicConfig
from nodes.routes import RouteBriefs, route_in_brief

NAMES = st.sampled_from(["a", "b"])
IDS = st.integers(0, 2)
PORTS = st.integers(1, 4)


class RouteTableAgainstItsModel(RuleBasedStateMachine):
    """The model knows only who holds which id, and who was heard of when."""

    def __init__(self):
        super().__init__()
        self.table = RouteTable(support_acting_master=True)
        self.members = {}
        self.heard = {}
        self.now_ms = 0
        self.briefs = RouteBriefs()
        self.reported = {}

    def _send(self, name):
        for topic in dict.fromkeys([*self.reported, *self.table.topics]):
            changed = self.briefs.change(topic, name, self.table.part_of_route(topic, name))
            before, self.reported[topic] = self.reported.get(topic), self.briefs.route(topic)
            assert changed == (before != self.reported[topic])

    @rule(name=NAMES, broker_id=IDS, port=PORTS, acting=st.sampled_from([True, False, None]), count=IDS)
    def register(self, name, broker_id, port, acting, count):
        address = f"{name}:{port}"
        configs = {f"t{i}": TopicConfig(f"t{i}") for i in range(count)}
        body = RegisterBrokerBody(TopicConfigSerializeWrapper(configs, DataVersion(0, 0, count)))
        header = RegisterBrokerRequestHeader(name, address, "c", "ha", broker_id, 50, acting)
        accepted = self.table.register_broker(header, body, channel=address, now_ms=self.now_ms)
        self._send(name)
        group = self.members.setdefault(name, {})
        for other in [i for i, held in group.items() if held == address and i != broker_id]:
            del group[other]
        assert (accepted is None) == (broker_id not in group and count == 1)
        if accepted is not None:
            group[broker_id] = address
            self.heard[address] = self.now_ms
            master = group.get(0)
            expected = master if broker_id and master in self.heard else None
            assert accepted.response.master_addr == expected

    @rule(name=NAMES, broker_id=IDS, port=PORTS)
    def unregister(self, name, broker_id, port):
        address = f"{name}:{port}"
        self.table.unregister_brokers([UnregisterBrokerRequestHeader(name, address, "c", broker_id)])
        self._send(name)
        self.heard.pop(address, None)
        if name in self.members:
            left = {i: held for i, held in self.members[name].items() if held != address}
            self.members[name] = left
            if not left:
                del self.members[name]

    @rule(name=NAMES, port=PORTS)
    def heartbeat(self, name, port):
        address = f"{name}:{port}"
        self.table.heartbeat("c", address, self.now_ms)
        if address in self.heard:
            self.heard[address] = self.now_ms

    @rule(passed_ms=st.integers(1, 60))
    def scan(self, passed_ms):
        self.now_ms += passed_ms
        expired = self.table.scan_not_active_brokers(self.now_ms)
        assert sorted(e.broker.address for e in expired) == sorted(
            address for address, at_ms in self.heard.items() if at_ms + 50 < self.now_ms
        )

    @invariant()
    def members_and_live_brokers_are_the_models(self):
        info = self.table.cluster_info()
        assert {name: dict(data.broker_addrs) for name, data in info.broker_addr_table.items()} == self.members
        assert {broker: live.last_update_ms for broker, live in self.table.live_brokers.items()} == {
            BrokerAddress("c", address): at_ms for address, at_ms in self.heard.items()
        }

    @invariant()
    def every_topic_has_queues_and_only_of_known_groups(self):
        for topic, queues in self.table.topics.items():
            assert queues
            assert [name for name in queues if name not in self.members] == []
            route = self.table.pick_up_topic_route(topic)
            assert [data.broker_name for data in route.queue_datas] == list(queues)

    @invariant()
    def what_is_answered_broker_by_broker_is_the_whole_route(self):
        routes = {topic: self.table.pick_up_topic_route(topic) for topic in self.reported}
        assert self.reported == {topic: route_in_brief(route) if route else None for topic, route in routes.items()}

    @invariant()
    def a_route_shows_the_members_or_the_lowest_of_them_as_master(self):
        for topic, queues in self.table.topics.items():
            for data in self.table.pick_up_topic_route(topic).broker_datas:
                true = self.members[data.broker_name]
                if true and dict(data.broker_addrs) != true:
                    lowest = min(true)
                    assert lowest != 0
                    assert not queues[data.broker_name].perm & 2
                    rest = {i: held for i, held in true.items() if i != lowest}
                    assert dict(data.broker_addrs) == {0: true[lowest], **rest}


TestRouteTable = RouteTableAgainstItsModel.TestCase
TestRouteTable.settings = settings(max_examples=40, stateful_step_count=25)
