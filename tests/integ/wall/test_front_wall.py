#!/usr/bin/env python3
"""Sums of domain wall fermions on their way from the engine to clients: test_front_wall.py QUARKD"""
import contextlib
import sys

import tap

try:
    import numpy as np
    from front_case import LATER, Case, State, fake, kill, once_more
    from front_driver import STATUS, Client, qk
    from state_case import results_of
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

TIMES = 4  # of the fake engine
WALL = dict(source=qk.SOURCE_Z2, max_iter=fake.WALL)


def told(c, seeds, **more):
    """The results of right-hand sides of these seeds."""
    c.submit(len(seeds), column=[qk.Column(seed=s) for s in seeds], **more)
    return c.results(len(seeds))


def as_sent(r):
    """Whether the sums are those of the engine for its seed, the number of the right-hand side."""
    t = np.arange(TIMES)
    w = r.wall
    return list(w.quark) == list(r.rhs + 1 + t) and list(w.midpoint) == list((r.rhs + 1 + t) / 8) and list(w.axial) == list(-0.5 * t)


@tap.test
def results_have_the_sums_of_the_engine(case):
    with case.daemon() as d, Client(d) as c:
        for r in told(c, range(3), **WALL):
            assert r.status == 0 and as_sent(r), r
        for r in told(c, range(2), sink=qk.SINK_NONE, **WALL):
            assert r.status == 0 and r.bytes == 0 and as_sent(r), r
        for r in told(c, range(2), source=qk.SOURCE_Z2):
            assert r.status == 0 and not r.HasField('wall'), r


@tap.test
def sums_that_are_none_are_left_out(case):
    """The result is as it is without them."""
    with case.daemon() as d, Client(d) as c:
        for r in told(c, range(7), source=qk.SOURCE_Z2, max_iter=fake.BAD_WALL):
            assert r.status == 0 and r.bytes > 0 and not r.HasField('wall'), r
        assert as_sent(told(c, [0], **WALL)[0])


@tap.test
def they_are_told_again_until_they_are_acknowledged(case):
    with case.daemon() as d, Client(d) as c:
        told(c, range(2), detach_ms=3600 * 1000, **WALL)
        c.ack(1, 1)
        d.status_when(lambda s: s.counters.held == 1)
        with Client(d, c.client_id) as c2:
            c2.send(attach=qk.Attach(request=1))
            c2.expect('attached', skip=('progress', 'credit'))
            assert as_sent(c2.expect('result'))


def walls(state):
    with contextlib.closing(state.journal()) as db:
        return dict(db.execute('SELECT number, wall FROM rhs'))


@tap.test
def the_journal_keeps_them(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            told(c, range(3), **WALL)
            c.ack(1, 1)
            kill(d)
        with state.daemon() as d, Client(d, c.client_id) as c2:
            once_more(c2, 3, 1, **WALL)
            for r in results_of(c2, 1, 2):
                assert r.rhs != 1 and as_sent(r), r
            c2.ack(1)
            d.status_when(lambda s: s.counters.requests == 0 or s.counters.held == 0)


@tap.test
def rows_with_damaged_sums_are_solved_again(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            told(c, range(4), **WALL)
            kill(d)
        good = walls(state)[0]
        bad = {0: good[:-1], 1: b'\x00', 2: good + b'\x01' * 20000, 3: 'text'}
        with contextlib.closing(state.journal()) as db, db:
            for number, value in bad.items():
                db.execute('UPDATE rhs SET wall=? WHERE number=?', (value, number))
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
            for number in bad:
                d.log(r'rhs %d of the request in row \d+.*wall' % number)
            once_more(c2, 4, 1, **WALL)
            for r in results_of(c2, 1, 4):
                assert r.status == 0 and r.attempt == 1 and as_sent(r), r


@tap.test
def a_solution_that_is_made_again_has_its_sums(case):
    """Its memory was lost."""
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            told(c, range(2), **WALL)
            kill(d)
        state.lose(1, [0])
        with state.daemon(env=LATER) as d, Client(d, c.client_id) as c2:
            once_more(c2, 2, 1, **WALL)
            for r in results_of(c2, 1, 2):
                assert r.status == 0 and r.attempt == (r.rhs == 0) and as_sent(r), r


@tap.test
def who_was_cancelled_has_none(case):
    with case.daemon('--slots', '1') as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 1)
        c.send(cancel=qk.Cancel(request=1))
        r = c.expect('result', skip=('progress',))
        assert r.status == STATUS['CANCELLED'] and not r.HasField('wall'), r


tap.run(Case(*sys.argv[1:]))
