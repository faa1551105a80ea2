"""RocketMQ's schedulers as tasks: fixed rate, fixed delay, shared threads, and the wake-up."""

from emulator.testing.worlds import MS, add_host, execute_world, until_ms
from emulator.time.timeline import NEVER_NS
from nodes.cause import cause
from nodes.threads import ScheduledThread, WakeUp


def ran(schedule, until=100):
    """(job, begin in ms) of everything that `schedule(host, thread, job)` puts on one thread."""

    async def main(world):
        log = []

        async def life(host):
            def job(name, *durations_ms):
                left = list(durations_ms)

                async def run():
                    log.append((name, host.clock.monotonic_ns() // MS))
                    if left:
                        await host.sleep_ms(left.pop(0))

                return run

            thread = ScheduledThread(host, "thread")
            schedule(thread, job)
            thread.start()

        add_host(world, 1, "node", life)
        await until_ms(world, until)
        return log

    return execute_world(main).result


def test_a_fixed_rate_job_keeps_its_instants_however_long_it_takes():
    def schedule(thread, job):
        thread.at_fixed_rate("a", job("a", 7, 7, 7), 5, 20)

    assert ran(schedule) == [("a", ms) for ms in (5, 25, 45, 65, 85)]


def test_a_fixed_rate_job_that_is_too_slow_catches_up_back_to_back():
    def schedule(thread, job):
        thread.at_fixed_rate("a", job("a", 45), 0, 10)

    assert ran(schedule, 65) == [("a", ms) for ms in (0, 45, 45, 45, 45, 50, 60)]


def test_a_fixed_delay_job_pauses_after_it_has_ended():
    def schedule(thread, job):
        thread.with_fixed_delay("a", job("a", 15, 5), 10, 20)

    assert ran(schedule) == [("a", ms) for ms in (10, 45, 70, 90)]


def test_a_slow_job_delays_its_neighbour_on_the_thread():
    def schedule(thread, job):
        thread.at_fixed_rate("slow", job("slow", 30), 0, 100)
        thread.at_fixed_rate("quick", job("quick"), 10, 10)

    assert ran(schedule, 55) == [("slow", 0), *(("quick", ms) for ms in (30, 30, 30, 40, 50))]


def test_jobs_of_one_instant_run_in_the_order_in_which_they_were_added():
    def schedule(thread, job):
        for name in "bac":
            thread.at_fixed_rate(name, job(name), 10, 100)

    assert ran(schedule) == [("b", 10), ("a", 10), ("c", 10)]


def test_each_run_of_a_job_begins_a_cause_of_its_own():
    async def main(world):
        async def life(host):
            async def job():
                pass

            thread = ScheduledThread(host, "thread")
            thread.at_fixed_rate("heartbeat", job, 10, 10)
            thread.start()

        add_host(world, 1, "node", life)
        await until_ms(world, 35)

    causes = execute_world(main).trace.select("causes")

    assert [(r["node"], r["name"], r["t_ns"] // MS) for r in causes] == [
        ("node", "heartbeat", ms) for ms in (10, 20, 30)
    ]


def woken(*wakes_ms, works_ms=0):
    async def main(world):
        log = []

        async def life(host):
            wake_up = WakeUp(host)
            for at_ms in wakes_ms:
                host.call_later_ms(at_ms, wake_up.wake)
            while True:
                await wake_up.sleep_ms(20)
                log.append(host.clock.monotonic_ns() // MS)
                if works_ms:
                    await host.sleep_ms(works_ms)

        add_host(world, 1, "node", life)
        await until_ms(world, 61)
        return log

    return execute_world(main).result


def test_a_thread_that_no_one_wakes_sleeps_its_time():
    assert woken() == [20, 40, 60]


def test_a_wake_up_ends_the_sleep_and_the_next_one_is_whole():
    assert woken(5) == [5, 25, 45]


def test_wake_ups_of_one_instant_and_those_during_work_become_one():
    assert woken(5, 5, 5) == [5, 25, 45]
    assert woken(5, 7, 8, 9, works_ms=10) == [5, 15, 45]


def test_who_was_woken_goes_on_with_the_cause_of_the_first_who_woke_it():
    async def main(world):
        causes = []

        async def life(host):
            wake_up = WakeUp(host)
            for name in ("first", "second"):
                host.begin_cause(name)
                wake_up.wake()
            host.begin_cause("own")
            causes.append((await wake_up.sleep_ms(20), cause.get()))
            causes.append((await wake_up.sleep_ms(20), cause.get()))

        add_host(world, 1, "node", life)
        await until_ms(world, 61)
        return causes

    executed = execute_world(main)

    first = executed.trace.select("causes", name="first")[0]["seq"]
    assert executed.result == [(True, first), (False, first)]


def test_who_waits_for_a_wake_up_sets_no_timer_and_goes_on_with_its_cause():
    async def main(world):
        causes = []

        async def life(host):
            wake_up = WakeUp(host)

            def wake():
                host.begin_cause("waker")
                wake_up.wake()

            host.call_later_ms(5, wake)
            await wake_up.wait()
            causes.append((host.clock.monotonic_ns() // MS, cause.get()))
            wake()
            await wake_up.wait()
            causes.append((host.clock.monotonic_ns() // MS, cause.get()))
            await wake_up.wait()

        add_host(world, 1, "node", life)
        await until_ms(world, 10)
        return causes, world.timeline.next_due_ns()

    executed = execute_world(main)

    wakers = [row["seq"] for row in executed.trace.select("causes", name="waker")]
    assert executed.result == ([(5, wakers[0]), (5, wakers[1])], NEVER_NS)
