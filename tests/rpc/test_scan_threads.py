"""A thread that scans every few milliseconds, as far as it has something to do."""

from emulator.machine.world import World
from emulator.testing.worlds import MS, add_host, execute_world, process_of, until_ms
from nodes.threads import ScanThread


def scans(script, *, took_ms=0):
    """The instants of the scans, in ms; the thread has a period of 5 ms and starts at 2 ms."""

    async def main(world: World):
        process, at_ms = process_of(add_host(world, 1, "a")), []

        async def scan():
            at_ms.append(world.timeline.now_ns / MS)
            await process.sleep_ms(took_ms)

        await until_ms(world, 2)
        thread = ScanThread(process, "scan", 5, scan)
        thread.start()
        await script(world, thread)
        await until_ms(world, 200)
        return at_ms

    return execute_world(main).result


def test_a_scan_happens_at_an_instant_of_the_thread_and_only_when_it_is_asked_for():
    async def script(world, thread):
        await until_ms(world, 33)
        thread.scan_in_ms()
        await until_ms(world, 50)
        thread.scan_in_ms(21)

    assert scans(script) == [37, 72]


def test_an_instant_that_is_now_is_over_already():
    async def script(world, thread):
        await until_ms(world, 32)
        thread.scan_in_ms()

    assert scans(script) == [37]


def test_an_earlier_scan_replaces_a_later_one_and_not_the_other_way_round():
    async def script(world, thread):
        thread.scan_in_ms(100)
        thread.scan_in_ms(7)
        thread.scan_in_ms(60)

    assert scans(script) == [12]


def test_what_is_asked_for_during_a_scan_comes_a_period_after_its_end():
    async def script(world, thread):
        thread.scan_in_ms()
        await until_ms(world, 9)
        thread.scan_in_ms()

    assert scans(script, took_ms=8) == [7, 20]
