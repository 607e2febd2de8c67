#!/usr/bin/env python3
"""Flavours of requests and of columns, from SUBMIT to FILL, with an engine that gives -x for a request of flavour -1: test_front_flavour.py QUARKD"""
import os
import signal
import sys

import tap

try:
    import numpy as np
    from front_case import LATER, Case, State, fake, field, kill, once_more
    from front_driver import STATUS, Client, qk
    from state_case import results_of
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

TWISTED = '--action', 'twisted-clover', '--set', 'mu=0.1'


def check(client, request, fields, sign):
    for r in sorted(client.results(len(fields)), key=lambda r: r.rhs):
        assert r.request == request and r.status == 0, r
        assert np.array_equal(client.fetch(r), sign * 2 * fields[r.rhs]), (r, sign)


@tap.test
def a_daemon_says_that_it_knows_flavours(case):
    with case.daemon() as d, Client(d) as c:
        assert 9 in c.welcome.feature


@tap.test
def each_request_is_solved_for_its_flavour(case):
    with case.daemon(*TWISTED) as d, Client(d) as c:
        for more, sign in ({}, 1), (dict(flavour=0), 1), (dict(flavour=1), 1), (dict(flavour=-1), -1), ({}, 1):
            accepted, fields = c.submit(2, **more), [field(), field()]
            c.upload(accepted, fields)
            check(c, accepted.request, fields, sign)
            c.ack(accepted.request)


@tap.test
def other_flavours_are_refused_and_nobody_else_notices(case):
    with case.daemon('--slots', '2') as d, Client(d) as c:
        b = field()
        accepted = c.submit(1)
        r = c.submit(1, flavour=-1, expect='rejected')
        assert r.status == STATUS['BAD_ARGUMENT'], r
        assert r.text == 'flavour = -1: the action wilson of this setup has no flavours, only 1 is accepted', r
        for flavour in 2, -2, 2 ** 31 - 1, -2 ** 31:
            r = c.submit(1, flavour=flavour, expect='rejected')
            assert r.status == STATUS['BAD_ARGUMENT'] and r.text == 'flavour = %d: must be 1 or -1' % flavour, r
        c.upload(accepted, [b])
        check(c, accepted.request, [b], 1)
    with case.daemon(*TWISTED) as d, Client(d) as c:
        r = c.submit(1, flavour=2, expect='rejected')
        assert r.status == STATUS['BAD_ARGUMENT'] and r.text == 'flavour = 2: must be 1 or -1', r


@tap.test
def a_repetition_with_another_flavour_is_another_request(case):
    with case.daemon(*TWISTED) as d, Client(d) as c:
        first = c.submit(1, flavour=-1)
        assert c.submit(1, request=first.request, flavour=-1).repeated_submit
        r = c.submit(1, request=first.request, expect='rejected')
        assert r.status == STATUS['BAD_ARGUMENT'] and 'exists with other parameters' in r.text, r


@tap.test
def the_flavour_of_a_sequential_source_is_that_of_the_new_solve(case):
    """Through a kept solution of either flavour."""
    with case.daemon(*TWISTED) as d, Client(d) as c:
        for first in 1, -1:
            b = field()
            kept = c.submit(1, sink=qk.SINK_KEEP, flavour=first)
            c.upload(kept, [b])
            check(c, kept.request, [b], first)
            for second in 1, -1:
                c.submit(1, source=qk.SOURCE_SEQUENTIAL, flavour=second, column=[qk.Column(request=kept.request, gamma=4)])
                r = c.expect('result')
                assert r.status == 0 and np.array_equal(c.fetch(r), second * 5 * first * 2 * b), (r, first, second)


@tap.test
def a_lost_engine_costs_no_flavour(case):
    with case.daemon(*TWISTED, '--slots', '2') as d, Client(d) as c:
        fields = [field() for _ in range(3)]
        accepted = c.submit(3, max_iter=fake.HOLD_ONCE, flavour=-1)
        c.upload(accepted, fields)
        pid = d.status_when(lambda s: s.counters.running == 2).engine.pid
        os.kill(pid, signal.SIGKILL)
        check(c, accepted.request, fields, -1)


@tap.test
def the_journal_keeps_the_flavour(case):
    """Of what was solved and kept, of what was in a slot, of what waited; of ATTACHED."""
    with State(case) as state:
        fields = [field() for _ in range(4)]
        with state.daemon(*TWISTED, '--slots', '1') as d, Client(d) as c:
            kept = c.submit(1, sink=qk.SINK_KEEP, flavour=-1)
            c.upload(kept, fields[:1])
            check(c, 1, fields[:1], -1)
            held = c.submit(2, max_iter=fake.HOLD_ONCE, flavour=-1)
            c.upload(held, fields[1:3])
            plain = c.submit(1, max_iter=fake.HOLD_ONCE)
            c.upload(plain, fields[3:])
            d.status_when(lambda s: s.counters.running == 1 and s.counters.queued == 2)
            kill(d)
        with state.daemon(*TWISTED, '--slots', '1', env=LATER) as d, Client(d, c.client_id) as c2:
            assert c2.welcome.resumed
            for request, nrhs, more, sign in (2, 2, dict(flavour=-1), -1), (3, 1, {}, 1):
                once_more(c2, nrhs, request, max_iter=fake.HOLD_ONCE, **more)
                for r in results_of(c2, request, nrhs):
                    b = fields[{2: 1, 3: 3}[request] + r.rhs]
                    assert r.status == 0 and np.array_equal(c2.fetch(r), sign * 2 * b), r
            c2.send(attach=qk.Attach(request=2))
            assert c2.expect('attached', skip=('progress', 'credit', 'result')).submit.flavour == -1
            c2.results(2)  # they are told again
            c2.submit(1, request=4, source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=1, gamma=0)])
            r, = results_of(c2, 4, 1)
            assert r.status == 0 and np.array_equal(c2.fetch(r), -2 * fields[0]), r
            c2.send(release=qk.Release(request=1))
            for request in 2, 3, 4:
                c2.ack(request)
            assert d.terminate() == 0


@tap.test
def an_engine_that_is_adopted_is_told_the_flavour_again(case):
    with State(case) as state, state.fronts() as front:
        fields = [field(), field()]
        with front(*TWISTED, '--slots', '1') as d, Client(d) as c:
            c.upload(c.submit(2, max_iter=fake.HOLD_ONCE, flavour=-1), fields)
            pid = d.status_when(lambda s: s.counters.running == 1 and s.counters.queued == 1).engine.pid
            kill(d)
        with front(*TWISTED, '--slots', '1') as d, Client(d, c.client_id) as c2:
            once_more(c2, 2, 1, max_iter=fake.HOLD_ONCE, flavour=-1)
            check(c2, 1, fields, -1)
            c2.ack(1)
            assert d.status().engine.pid == pid
            assert d.terminate() == 0


# ---- doublets: right-hand sides of two flavours, and the flavour of a column

DOUBLET = '--action', 'doublet', '--set', 'mu=0.1', '--set', 'epsilon=0.05'
GAUGE = 'builtin:fake:site_reals=48:columns=24'
FLAVOURS = 1, -1, 0, -1


def two():
    """One right-hand side of both flavours."""
    return field(2 * 256)


def columns():
    """Noise with a seed for each."""
    return [qk.Column(seed=5 + i, t=-1, spin=-1, colour=-1, flavour=f) for i, f in enumerate(FLAVOURS)]


def noise(client, request=None, **more):
    return client.submit(len(FLAVOURS), request=request, source=qk.SOURCE_Z2, column=columns(), **more)


def check_columns(client, results):
    """Each has its own seed and flavour, which the engine was told."""
    results = sorted(results, key=lambda r: r.rhs)
    assert [r.rhs for r in results] == list(range(len(FLAVOURS)))
    for r, flavour in zip(results, FLAVOURS):
        assert r.status == 0, r
        x = client.fetch(r)
        assert len(x) == 2 * 256 * 12 and (x[0], x[4]) == (5 + r.rhs, flavour), (r, x[:5])


@tap.test
def a_daemon_says_that_it_knows_flavours_of_columns(case):
    with case.daemon() as d, Client(d) as c:
        assert 11 in c.welcome.feature


@tap.test
def fields_have_both_flavours(case):
    with case.daemon(*DOUBLET, gauge=GAUGE) as d, Client(d) as c:
        setup = d.status().setup
        assert (setup.action, setup.site_reals, setup.columns) == ('doublet', 48, 24), setup
        fields = [two(), two()]
        accepted = c.submit(2)
        assert accepted.field_bytes == 2 * 256 * 24 * 8
        c.upload(accepted, fields)
        for r in sorted(c.results(2), key=lambda r: r.rhs):
            assert r.status == 0 and np.array_equal(c.fetch(r), 2 * fields[r.rhs])


@tap.test
def the_engine_is_told_the_flavour_of_each_column(case):
    with case.daemon(*DOUBLET, gauge=GAUGE) as d, Client(d) as c:
        noise(c)
        check_columns(c, c.results(len(FLAVOURS)))


@tap.test
def what_is_not_defined_is_refused_and_nobody_else_notices(case):
    with case.daemon(*DOUBLET, gauge=GAUGE) as d, Client(d) as c:
        accepted, b = c.submit(1), two()
        kept = c.submit(24, source=qk.SOURCE_POINT, sink=qk.SINK_KEEP,
                        column=[qk.Column(spin=i % 12 // 3, colour=i % 3, flavour=1 if i < 12 else -1) for i in range(24)]).request
        assert all(r.status == 0 for r in c.results(24))
        text = 'is not defined for a doublet, whose right-hand sides have two flavours (48 real numbers a site, 24 columns)'
        r = c.contract(kept, expect='rejected')
        assert (r.status, r.text) == (STATUS['UNSUPPORTED'], 'a contraction: ' + text), r
        r = c.submit(1, source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=kept, t=-1)], expect='rejected')
        assert (r.status, r.text) == (STATUS['UNSUPPORTED'], 'a sequential source: ' + text), r
        for flavour in 2, -2, 2 ** 31 - 1, -2 ** 31:
            for source in qk.SOURCE_POINT, qk.SOURCE_WALL, qk.SOURCE_Z2, qk.SOURCE_Z4:
                r = c.submit(1, source=source, column=[qk.Column(flavour=flavour)], expect='rejected')
                assert (r.status, r.text) == (STATUS['BAD_ARGUMENT'], 'column 0: flavour = %d is outside -1 .. 1' % flavour), r
        r = c.submit(1, flavour=-1, expect='rejected')
        assert r.status == STATUS['BAD_ARGUMENT'] and 'right-hand sides of the action doublet of this setup have both flavours' in r.text, r
        c.upload(accepted, [b])
        r = c.expect('result')
        assert r.status == 0 and np.array_equal(c.fetch(r), 2 * b)
    with case.daemon() as d, Client(d) as c:
        r = c.submit(2, source=qk.SOURCE_POINT, column=[qk.Column(flavour=1), qk.Column(flavour=-1)], expect='rejected')
        assert r.status == STATUS['BAD_ARGUMENT'] and r.text.startswith('column 1: flavour = -1: right-hand sides of this action have one'), r


@tap.test
def a_repetition_with_another_flavour_in_a_column_is_another_request(case):
    with case.daemon(*DOUBLET, gauge=GAUGE) as d, Client(d) as c:
        first = noise(c)
        once_more(c, len(FLAVOURS), first.request, source=qk.SOURCE_Z2, column=columns())
        other = columns()
        other[1].flavour = 1
        c.submit(len(FLAVOURS), request=first.request, source=qk.SOURCE_Z2, column=other, expect=None)
        r = c.expect('rejected', skip=('progress', 'credit', 'result'))
        assert r.status == STATUS['BAD_ARGUMENT'] and 'exists with other parameters' in r.text, r


@tap.test
def a_lost_engine_costs_no_flavour_of_a_column(case):
    with case.daemon(*DOUBLET, '--slots', '2', gauge=GAUGE) as d, Client(d) as c:
        noise(c, max_iter=fake.HOLD_ONCE)
        os.kill(d.status_when(lambda s: s.counters.running == 2).engine.pid, signal.SIGKILL)
        check_columns(c, c.results(len(FLAVOURS)))


@tap.test
def the_journal_keeps_the_flavours_of_columns(case):
    """Of what was in a slot and of what waited when the front was killed; ATTACHED says them again."""
    with State(case) as state:
        with state.daemon(*DOUBLET, '--slots', '1', gauge=GAUGE) as d, Client(d) as c:
            noise(c, max_iter=fake.HOLD_ONCE)
            d.status_when(lambda s: s.counters.running == 1 and s.counters.queued == len(FLAVOURS) - 1)
            kill(d)
        with state.daemon(*DOUBLET, '--slots', '1', gauge=GAUGE, env=LATER) as d, Client(d, c.client_id) as c2:
            assert c2.welcome.resumed
            once_more(c2, len(FLAVOURS), 1, source=qk.SOURCE_Z2, column=columns(), max_iter=fake.HOLD_ONCE)
            check_columns(c2, results_of(c2, 1, len(FLAVOURS)))
            c2.send(attach=qk.Attach(request=1))
            told = c2.expect('attached', skip=('progress', 'credit', 'result')).submit
            assert [k.flavour for k in told.column] == list(FLAVOURS), told
            c2.results(len(FLAVOURS))
            c2.ack(1)
            assert d.terminate() == 0


@tap.test
def an_engine_that_is_adopted_is_told_the_flavours_again(case):
    with State(case) as state, state.fronts() as front:
        with front(*DOUBLET, '--slots', '1', gauge=GAUGE) as d, Client(d) as c:
            noise(c, max_iter=fake.HOLD_ONCE)
            pid = d.status_when(lambda s: s.counters.running == 1).engine.pid
            kill(d)
        with front(*DOUBLET, '--slots', '1', gauge=GAUGE) as d, Client(d, c.client_id) as c2:
            once_more(c2, len(FLAVOURS), 1, source=qk.SOURCE_Z2, column=columns(), max_iter=fake.HOLD_ONCE)
            check_columns(c2, results_of(c2, 1, len(FLAVOURS)))
            c2.ack(1)
            assert d.status().engine.pid == pid
            assert d.terminate() == 0


tap.run(Case(*sys.argv[1:]))
