#!/usr/bin/env python3
"""Fields with colour alone, as those of staggered fermions, through the daemon: sizes, refusals, kept solutions, contractions, the journal: test_front_colour.py QUARKD"""
import sys

import tap

try:
    import numpy as np
    from front_case import LATER, Case, State, fake, kill, once_more
    from front_driver import STATUS, Client, qk
    from state_case import results_of
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

GAUGE = 'builtin:fake:site_reals=6:columns=3'
SITES = 256


def colours(seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(3 * SITES) + 1j * rng.standard_normal(3 * SITES)


def point(client, request=None, **more):
    return client.submit(3, request=request, source=qk.SOURCE_POINT, column=[qk.Column(colour=i) for i in range(3)], **more)


def refused(client, status, text, **more):
    r = client.submit(1, expect='rejected', **more)
    assert r.status == STATUS[status] and text in r.text, (text, r)


@tap.test
def fields_have_six_numbers_a_site(case):
    with case.daemon(gauge=GAUGE) as d, Client(d) as c:
        setup = d.status().setup
        assert (setup.site_reals, setup.columns) == (6, 3), setup
        fields = [colours(1), colours(2)]
        accepted = c.submit(2)
        assert accepted.field_bytes == SITES * 6 * 8
        c.upload(accepted, fields)
        for r in sorted(c.results(2), key=lambda r: r.rhs):
            assert r.status == 0 and np.array_equal(c.fetch(r), 2 * fields[r.rhs])


@tap.test
def twice_is_a_factor_of_a_half(case):
    with case.daemon(gauge=GAUGE) as d, Client(d) as c:
        b = colours(3)
        for normalisation, work, factor in ((qk.NORMALISATION_TWICE, qk.WORK_SOLVE, 0.5), (qk.NORMALISATION_TWICE, qk.WORK_M, 2),
                                            (qk.NORMALISATION_TWICE, qk.WORK_HOP, 1), (qk.NORMALISATION_MASS, qk.WORK_SOLVE, 1)):
            accepted = c.submit(1, normalisation=normalisation, work=work)
            c.upload(accepted, [b])
            r = c.expect('result')
            assert r.status == 0 and np.array_equal(c.fetch(r), factor * (1 + work) * 2 * b), (normalisation, work)
    with case.daemon() as d, Client(d) as c:
        refused(c, 'BAD_ARGUMENT', 'normalisation = 2: it is for staggered fermions', normalisation=qk.NORMALISATION_TWICE)


@tap.test
def what_colours_do_not_have_is_refused_by_name(case):
    with case.daemon(gauge=GAUGE) as d, Client(d) as c:
        of = 'fields of this setup have colour alone'
        refused(c, 'BAD_ARGUMENT', 'basis = 1: ' + of, basis=qk.BASIS_UKQCD)
        refused(c, 'UNSUPPORTED', 'dagger: ' + of, dagger=True)
        refused(c, 'UNSUPPORTED', 'a field of one parity: needs fields of spin and colour', parity=qk.PARITY_EVEN)
        for spin in 1, 3, -1:
            refused(c, 'BAD_ARGUMENT', 'column 0: spin = %d is outside 0 .. 0' % spin, source=qk.SOURCE_WALL, column=[qk.Column(spin=spin)])
        kept = point(c, sink=qk.SINK_KEEP).request
        assert all(r.status == 0 for r in c.results(3))
        refused(c, 'UNSUPPORTED', 'column 0: gamma = 15: ' + of, source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=kept, gamma=15)])
        c.request += 1
        c.send(eigen=qk.Eigen(request=c.request, problem=qk.EigenProblem(name='low', kind=qk.EIGEN_LAPLACIAN, count=4, tol=1e-8)))
        r = c.expect('rejected')
        assert r.status == STATUS['UNSUPPORTED'] and 'kind = 2 (laplacian): of fields with colour alone' in r.text, r
        accepted, b = c.submit(1), colours(4)
        c.upload(accepted, [b])
        r = c.expect('result')
        assert r.status == 0 and np.array_equal(c.fetch(r), 2 * b)


@tap.test
def kept_solutions_are_sources_and_are_contracted(case):
    with case.daemon(gauge=GAUGE) as d, Client(d) as c:
        b = [colours(5 + i) for i in range(3)]
        accepted = c.submit(3, sink=qk.SINK_KEEP)
        c.upload(accepted, b)
        assert all(r.status == 0 for r in c.results(3))
        c.submit(1, source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=accepted.request, rhs=1, t=-1)])
        r = c.expect('result')
        assert r.status == 0 and np.array_equal(c.fetch(r), 2 * b[1])
        pions = [qk.Channel(kind=qk.CHANNEL_MESON, sink=n, source=n) for n in (15, 7, 8)]
        c.contract(accepted.request, channel=pions)
        r = c.expect('result')
        assert r.status == 0 and r.bytes == 3 * 4 * 16, r
        c.contract(accepted.request, channel=[qk.Channel(kind=qk.CHANNEL_CORNER), *pions])
        r = c.expect('result')
        assert r.status == 0 and r.bytes == 4 * 4 * 16, r
        taste, corner = qk.Channel(kind=qk.CHANNEL_MESON, sink=9, source=15), qk.Channel(kind=qk.CHANNEL_CORNER)
        c.contract(accepted.request, request_b=accepted.request, channel=[taste, qk.Channel(kind=qk.CHANNEL_MESON, sink=1, source=7)])
        r = c.expect('result')
        assert r.status == 0 and r.bytes == 2 * 4 * 16, r
        for channel, text in (([qk.Channel(kind=qk.CHANNEL_MESON, sink=1, source=15)], 'channel 0: sink = 1, source = 15'),
                              ([qk.Channel(kind=qk.CHANNEL_DELTA)], 'channel 0: kind = 2'), ([taste, pions[0]], 'channel 1: spin and taste differ by 0'),
                              ([pions[0], taste], 'channel 1: spin and taste differ by 6'), ([corner, taste], 'channel 1')):
            r = c.contract(accepted.request, channel=channel, expect='rejected')
            assert r.status == STATUS['UNSUPPORTED'] and text in r.text, r
        r = c.contract(accepted.request, channel=pions, sink=qk.Smearing(alpha=0.1, steps=0, shift=1), expect='rejected')
        assert r.status == STATUS['BAD_ARGUMENT'] and 'sink: shift = 1' in r.text, r
        refused(c, 'BAD_ARGUMENT', 'smear: shift = 8 is outside 0 .. 7', smear=qk.Smearing(alpha=0, steps=0, shift=8))
    with case.daemon('--boundary', '1,-1,1,-1', gauge=GAUGE) as d, Client(d) as c:
        refused(c, 'UNSUPPORTED', 'smear: shift = 3: shifts take no boundary factor, and that of this setup in y', source=qk.SOURCE_POINT,
                column=[qk.Column()], smear=qk.Smearing(alpha=0, steps=0, shift=3))
        point(c, smear=qk.Smearing(alpha=0, steps=0, shift=5))
        assert all(r.status == 0 for r in c.results(3))
    with case.daemon() as d, Client(d) as c:
        refused(c, 'UNSUPPORTED', 'smear: shift = 1: of fields with colour alone', smear=qk.Smearing(alpha=0, steps=0, shift=1))


@tap.test
def three_columns_are_a_propagator(case):
    """Of a request with two there is none, of one with four two."""
    with case.daemon(gauge=GAUGE) as d, Client(d) as c:
        pion = [qk.Channel(kind=qk.CHANNEL_MESON, sink=15, source=15)]
        few, more = c.keep(2), c.keep(4)
        r = c.contract(few, channel=pion, expect='rejected')
        assert r.status == STATUS['BAD_ARGUMENT'] and 'rhs = 2 of request %d is outside 0 .. 1' % few in r.text, r
        c.contract(more, channel=pion, first_a=1)
        assert c.expect('result').status == 0
        r = c.contract(more, channel=pion, first_a=2, expect='rejected')
        assert r.status == STATUS['BAD_ARGUMENT'], r


@tap.test
def the_journal_keeps_columns_of_colours(case):
    """Of what was in a slot and of what waited when the front was killed."""
    with State(case) as state:
        more = dict(source=qk.SOURCE_Z2, column=[qk.Column(seed=5 + i, t=-1, spin=-1, colour=i) for i in range(3)], max_iter=fake.HOLD_ONCE)
        with state.daemon('--slots', '1', gauge=GAUGE) as d, Client(d) as c:
            c.submit(3, **more)
            d.status_when(lambda s: s.counters.running == 1 and s.counters.queued == 2)
            kill(d)
        with state.daemon('--slots', '1', gauge=GAUGE, env=LATER) as d, Client(d, c.client_id) as c2:
            assert c2.welcome.resumed
            once_more(c2, 3, 1, **more)
            for r in results_of(c2, 1, 3):
                x = c2.fetch(r)
                assert r.status == 0 and len(x) == 3 * SITES and x[0] == 5 + r.rhs, (r, x[:5])


tap.run(Case(*sys.argv[1:]))
