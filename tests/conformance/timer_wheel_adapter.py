"""Family timer_wheel: `TimerWheel`."""

from conformance.executing import Adapter
from nodes.broker.tables.timer.timer_wheel import TimerWheel


class TimerWheels(Adapter):
    def __init__(self, slots_total, precision_ms):
        self.wheel = TimerWheel(slots_total=slots_total, precision_ms=precision_ms)

    def put_slot(self, time_ms, first_pos, last_pos, num, magic):
        self.wheel.put_slot(time_ms, first_pos, last_pos, num, magic)

    def get_slot(self, time_ms):
        return shown(self.wheel.get_slot(time_ms))

    def get_num(self, time_ms):
        return {"num": self.wheel.get_num(time_ms), "allNum": self.wheel.get_all_num(time_ms)}


def shown(slot):
    return {
        "timeMs": slot.time_ms,
        "firstPos": slot.first_pos,
        "lastPos": slot.last_pos,
        "num": slot.num,
        "magic": slot.magic,
    }
