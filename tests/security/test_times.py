#!/usr/bin/env python3
"""Deadlines and leases, where a clock is set or a machine begins anew: test_times.py QUARKD [CLOCK]"""
import contextlib
import os
import re
import sys

import tap

try:
    from front_case import LATER, Case, State, fake, kill, once_more
    from front_driver import STATUS, Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


class Clock:
    """quarkd's wall clock."""

    def __init__(self, state):
        if len(sys.argv) < 3:
            raise tap.Skip('no clock that can be set: quarkd has the runtime of a sanitizer')
        self.path = os.path.join(state.dir, 'clock')
        self.env = {'LD_PRELOAD': sys.argv[2], 'QK_CLOCK': self.path}
        self.set(0)

    def set(self, seconds):
        with open(self.path + '.new', 'w', encoding='utf-8') as f:
            f.write(str(seconds))
        os.rename(self.path + '.new', self.path)


def reboot(state):
    """The journal is of another boot of the machine."""
    with contextlib.closing(state.journal()) as db, db:
        assert db.execute("UPDATE note SET value='00000000' || substr(value, 9) WHERE key='clock'").rowcount in (0, 1)
    state.end_the_machine()


@tap.test
def deadlines_follow_a_clock_that_is_set(case):
    """Five minutes ahead; the clock is set by ten, while quarkd runs, or while it does not, or before the machine ends: not one has passed.
    After a machine that was away for ten minutes it has."""
    for when, passed in (('runs', False), ('away', False), ('runs, then boots', False), ('away, then boots', True)):
        for by in (600, -600) if not passed else (600,):
            with State(case) as state:
                clock = Clock(state)
                with state.daemon(env=clock.env) as d, Client(d) as c:
                    c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD_ONCE, deadline_ms=300000)
                    if 'runs' in when:
                        clock.set(by)
                        m = d.log(r'the wall clock was set by (\S+) s')
                        assert abs(float(m[1]) - by) < 60, m[0]
                    kill(d)
                clock.set(by)
                if 'boots' in when:
                    reboot(state)
                with state.daemon(env={**clock.env, **LATER}) as d, Client(d, c.client_id) as c2:
                    once_more(c2, 1, 1, source=qk.SOURCE_Z2, max_iter=fake.HOLD_ONCE, deadline_ms=300000)
                    assert c2.expect('result').status == (STATUS['DEADLINE'] if passed else 0), (when, by)


@tap.test
def a_deadline_before_the_boot_is_over(case):
    """It was accepted, and fell due, before the loop's clock began."""
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, deadline_ms=300000)
            kill(d)
        reboot(state)
        with contextlib.closing(state.journal()) as db, db:
            db.execute('UPDATE job SET accepted=1e9, deadline=1e9+300')
        with state.daemon() as d, Client(d, c.client_id) as c2:
            once_more(c2, 1, 1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, deadline_ms=300000)
            assert c2.expect('result').status == STATUS['DEADLINE']


@tap.test
def the_end_of_a_lease_says_what_happened(case):
    """To the client and in the log: for how long it was silent, what has ended with its session, what has not, what to do."""
    with case.daemon('--lease', '0.5') as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD)
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, detach_ms=60000)
        name = None
        while name != 'error':
            name, body = c.receive()
        m = re.search(r'nothing came from this client for ([\d.]+) s, and its lease is 0.5 s: its session and 1 of its requests '
                      r'have ended, 1 continue detached; send HELLO .*PING every 0.167 s', body.text)
        assert m and 0.5 <= float(m[1]) < 20 and body.fatal and body.status == STATUS['EXPIRED'], body
        assert d.log(re.escape(body.text))


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]), beside=4)
