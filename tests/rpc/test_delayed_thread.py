"""One thread for delayed and periodic jobs, under virtual time."""

from emulator.testing.worlds import MS, add_host, execute_world, until_ms
from nodes.cause import cause
from nodes.threads import DelayedThread


def ran(script, until=100):
    """(job, begin in ms) of everything that `script(host, thread, job)` has the thread do."""

    async def main(world):
        log = []

        async def life(host):
            def job(name, duration_ms=0):
                async def run():
                    log.append((name, host.clock.monotonic_ns() // MS, cause.get()))
                    if duration_ms:
                        await host.sleep_ms(duration_ms)

                return run

            thread = DelayedThread(host, "thread")
            thread.start()
            await script(host, thread, job)

        add_host(world, 1, "node", life)
        await until_ms(world, until)
        return log

    return execute_world(main).result


def instants(rows):
    return [(name, at_ms) for name, at_ms, _ in rows]


def test_a_job_that_is_added_later_and_due_sooner_goes_first():
    async def script(host, thread, job):
        thread.after_ms(50, job("late"))
        await host.sleep_ms(10)
        thread.after_ms(5, job("early"))

    assert instants(ran(script)) == [("early", 15), ("late", 50)]


def test_a_slow_job_delays_all_others_and_missed_ticks_follow_back_to_back():
    async def script(_host, thread, job):
        thread.at_fixed_rate("tick", job("tick"), 10, 10)
        thread.after_ms(15, job("slow", 30))

    ticks = [("tick", at_ms) for at_ms in (45, 45, 45, 50, 60)]
    assert instants(ran(script, 65)) == [("tick", 10), ("slow", 15), *ticks]


def test_a_stopped_thread_still_runs_what_was_delayed_but_nothing_periodic():
    async def script(host, thread, job):
        thread.at_fixed_rate("tick", job("tick"), 10, 10)
        thread.after_ms(40, job("once"))
        await host.sleep_ms(25)
        thread.stop()

    assert instants(ran(script)) == [("tick", 10), ("tick", 20), ("once", 40)]


def test_a_delayed_job_has_the_cause_of_who_asked_and_a_tick_begins_its_own():
    async def script(_host, thread, job):
        cause.set(7)
        thread.after_ms(5, job("once"))
        thread.at_fixed_rate("tick", job("tick"), 10, 50)

    (once, first, second) = ran(script)
    assert once[2] == 7
    assert 7 not in (first[2], second[2])
    assert first[2] != second[2]
