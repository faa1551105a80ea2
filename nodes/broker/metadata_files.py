"""The files of a broker that hold what its slaves copy."""

from nodes.broker.context import BrokerContext
from nodes.broker.delay_offsets import TimerCheckPoint, encode_delay_offsets
from nodes.protocol.bodies import DelayOffsetSerializeWrapper

TOPIC_FILE = "topics"
GROUP_FILE = "subscriptionGroups"
OFFSET_FILE = "consumerOffset.json"
DELAY_OFFSET_FILE = "delayOffset.json"
MESSAGE_REQUEST_MODE_FILE = "messageRequestMode.json"
TIMER_CHECK_POINT_FILE = "timercheckpoint"


def persist_topics(broker: BrokerContext) -> None:
    """Write all topics."""
    broker.host.disk.write(TOPIC_FILE, broker.topics.encode())


def persist_groups(broker: BrokerContext) -> None:
    """Write all consumer groups."""
    broker.host.disk.write(GROUP_FILE, broker.groups.encode())


def persist_consumer_offsets(broker: BrokerContext) -> None:
    """Write all consumer offsets."""
    broker.host.disk.write(OFFSET_FILE, broker.offsets.encode())


def persist_delay_offsets(broker: BrokerContext, offsets: DelayOffsetSerializeWrapper) -> None:
    """Write delay offsets: the broker's own, or those that it has copied."""
    broker.host.disk.write(DELAY_OFFSET_FILE, encode_delay_offsets(offsets))


def persist_message_request_modes(broker: BrokerContext) -> None:
    """Write how groups get the messages of topics."""
    broker.host.disk.write(MESSAGE_REQUEST_MODE_FILE, broker.request_modes.encode())


def persist_timer_check_point(broker: BrokerContext) -> None:
    """Write where the timer stands, if there is one."""
    if broker.timer is not None:
        broker.host.disk.write(TIMER_CHECK_POINT_FILE, broker.timer.check_point.encode())


def load_delay_offsets(broker: BrokerContext) -> None:
    """Read the delay offsets as they were last written."""
    delays = broker.host.disk.read(DELAY_OFFSET_FILE)
    if delays is not None:
        broker.delay_offsets.decode(delays, now_ms=broker.host.clock.now_ms())


def load_progress_of_delays(broker: BrokerContext) -> None:
    """Read delay offsets and timer check point as an earlier process left them."""
    load_delay_offsets(broker)
    check_point = broker.host.disk.read(TIMER_CHECK_POINT_FILE)
    if check_point is not None and broker.timer is not None:
        broker.timer.check_point = TimerCheckPoint.decode(check_point)
