#!/usr/bin/env python3
"""Staggered fermions through the daemon, judged by numpy: test_staggered.py QUARKD QUARK_ENGINE QUARK_GAUGE RANKS"""
import functools
import itertools
import os
import sys
import tempfile

import tap

try:
    import numpy as np
    from front_case import State, kill, once_more
    from front_driver import Client, qk
    from open_gauge import write_openqcd
    from staggered_case import AXIS, MASS, Staggered, fetch_all, solve
    from state_case import results_of
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


@tap.test
def uploads_are_solved_in_each_precision(case):
    for precision in 'double', 'single', 'half':
        with case.daemon('--slots', '3', '--precision', precision) as d, Client(d) as c:
            setup = d.status().setup
            assert (setup.action, setup.site_reals, setup.columns) == ('staggered', 6, 3), setup
            fields = [case.noise(s) for s in range(5)]
            for x, b in zip(solve(c, fields), fields):
                assert case.residual(x, b) < 1.01e-10, precision
            light = [b.astype('complex64') for b in fields[:1]]
            assert case.residual(solve(c, light, dtype=qk.DTYPE_F32, tol=1e-6)[0].view('complex64'), light[0]) < 3e-6


@tap.test
def parts_of_the_operator_are_those_of_numpy(case):
    with case.daemon() as d, Client(d) as c:
        b = case.noise(7)
        m, adjoint = case.apply(b), case.apply(b, dagger=True)
        for work, dagger, want in ((qk.WORK_M, False, m), (qk.WORK_M, True, adjoint), (qk.WORK_HOP, False, 2 * (MASS * case.field(b) - m)),
                                   (qk.WORK_DIAG, False, MASS * case.field(b)), (qk.WORK_DIAG_INVERSE, False, case.field(b) / MASS)):
            x = case.field(solve(c, [b], work=work, dagger=dagger)[0])
            assert np.linalg.norm(x - want) < 1e-13 * np.linalg.norm(want), (work, dagger)
        x = case.field(solve(c, [b], work=qk.WORK_M, normalisation=qk.NORMALISATION_TWICE)[0])
        assert np.linalg.norm(x - 2 * m) < 1e-13 * np.linalg.norm(m)


@tap.test
def sources_are_those_that_are_asked_for(case):
    with case.daemon() as d, Client(d) as c:
        c.submit(3, source=qk.SOURCE_POINT, column=[qk.Column(x=1, y=2, z=3, t=2, colour=i) for i in range(3)], tol=1e-10)
        for i, x in enumerate(fetch_all(c, 3)):
            assert case.residual(x, case.point(i)) < 1.01e-10
        c.submit(1, source=qk.SOURCE_WALL, column=[qk.Column(t=1, colour=2)], tol=1e-10, normalisation=qk.NORMALISATION_TWICE)
        wall = np.zeros(case.lattice + (3,), complex)
        wall[1, ..., 2] = 1
        assert case.residual(2 * fetch_all(c, 1)[0], wall) < 1.01e-10
        noise = [qk.Column(seed=5, t=-1, spin=-1, colour=-1)]
        c.submit(1, source=qk.SOURCE_Z4, column=noise, work=qk.WORK_SMEAR)
        b = fetch_all(c, 1)[0]
        assert np.allclose(np.abs(b.real), 0.5 ** 0.5) and np.allclose(np.abs(b.imag), 0.5 ** 0.5) and abs(b.mean()) < 0.1
        c.submit(1, source=qk.SOURCE_Z4, column=noise, tol=1e-10)
        assert case.residual(fetch_all(c, 1)[0], b) < 1.01e-10


@tap.test
def a_pion_is_the_norm_of_its_columns(case):
    """And a0 and a4 have their signs; a correlator of two propagators is that of their product."""
    with case.daemon() as d, Client(d) as c:
        accepted = c.submit(3, source=qk.SOURCE_POINT, column=[qk.Column(x=1, y=2, z=3, t=2, colour=i) for i in range(3)], tol=1e-12, sink=qk.SINK_KEEP)
        norms = 0
        for r in c.results(3):
            assert r.status == 0, r
            norms = norms + (np.abs(case.field(c.fetch(r))) ** 2).sum(-1)
        channels = [qk.Channel(kind=qk.CHANNEL_MESON, sink=n, source=n) for n in (15, 0, 7, 1)]
        c.contract(accepted.request, channel=channels, origin=[1, 2, 3, 2])
        r = c.expect('result')
        assert r.status == 0, r
        got = c.fetch(r).view(complex).reshape(4, -1)
        t, z, y, x = np.indices(case.lattice)
        signs = 1, (-1.0) ** (x + y + z + t), -(-1.0) ** (x + y + z), (-1.0) ** (x - 1)
        for found, sign in zip(got, signs):
            want = np.roll((norms * sign).sum((1, 2, 3)), -2)
            assert np.allclose(found, want, rtol=1e-12, atol=1e-12 * np.abs(want).max()), (found, want)


def corner(case, a, b, origin, t):
    """1/6 e e a a b on the corners x - x0 = 0 (mod 2) of slice t0 + t, by all orders of all colours."""
    x0, sign, sum_ = origin, (-1) ** (sum(origin[:3]) * t), 0
    slice_ = (x0[3] + t) % case.lattice[0]
    at = (slice_, slice(x0[2] % 2, None, 2), slice(x0[1] % 2, None, 2), slice(x0[0] % 2, None, 2))
    for p, q in itertools.product(itertools.permutations(range(3)), repeat=2):
        parity = np.linalg.det(np.eye(3)[list(p)]) * np.linalg.det(np.eye(3)[list(q)])
        sum_ = sum_ + parity * a[q[0]][at][..., p[0]] * a[q[1]][at][..., p[1]] * b[q[2]][at][..., p[2]]
    return sign * (-1 if x0[3] + t >= case.lattice[0] else 1) * sum_.sum() / 6


@tap.test
def a_nucleon_is_a_determinant(case):
    """On corners of cubes that begin at an odd site, too; of two propagators the doubled one is the first."""
    with case.daemon() as d, Client(d) as c:
        for origin in (1, 2, 3, 2), (0, 3, 0, 6):
            x, y, z, t = origin
            points = [qk.Column(x=x, y=y, z=z, t=t, colour=i) for i in range(3)]
            kept = [c.submit(3, source=qk.SOURCE_POINT, column=points, tol=1e-12, sink=qk.SINK_KEEP, **more) for more in
                    ({}, {'smear': qk.Smearing(alpha=0.3, steps=2)})]
            found = {(k.request, r.rhs): case.field(c.fetch(r)) for k in kept for r in c.results(3)}
            a, b = ([found[k.request, i] for i in range(3)] for k in kept)
            raw = [qk.Channel(kind=qk.CHANNEL_CORNER), qk.Channel(kind=qk.CHANNEL_MESON, sink=15, source=15), qk.Channel(kind=qk.CHANNEL_CORNER)]
            for second, other in (0, a), (kept[1].request, b):
                c.contract(kept[0].request, channel=raw, origin=list(origin), **({'request_b': second} if second else {}))
                r = c.expect('result')
                assert r.status == 0, r
                n = c.fetch(r).view(complex).reshape(3, -1)
                want = np.array([corner(case, a, other, origin, s) for s in range(case.lattice[0])])
                assert np.abs(n[0] - want).max() < 1e-12 * np.abs(want).max() and np.array_equal(n[0], n[2]), (n[0], want)


@tap.test
def hadrons_are_the_same_wherever_the_source_is(case):
    """The links moved so that a source elsewhere is one at the origin: over odd distances, and the edge in t is at another place."""
    found = []
    raw = [qk.Channel(kind=qk.CHANNEL_CORNER), *(qk.Channel(kind=qk.CHANNEL_MESON, sink=n, source=n) for n in (15, 1, 12))]
    with tempfile.TemporaryDirectory() as folder:
        for x, y, z, t in (0, 0, 0, 0), (1, 0, 0, 5), (0, 3, 2, 1), (1, 2, 1, 7):
            gauge = os.path.join(folder, 'links')
            write_openqcd(gauge, np.roll(case.links, (t, z, y, x), (1, 2, 3, 4)))
            with case.daemon(gauge=gauge) as d, Client(d) as c:
                a = c.submit(3, source=qk.SOURCE_POINT, column=[qk.Column(x=x, y=y, z=z, t=t, colour=i) for i in range(3)], tol=1e-13, sink=qk.SINK_KEEP)
                assert all(r.status == 0 for r in c.results(3))
                c.contract(a.request, channel=raw, origin=[x, y, z, t], momentum=[0, 0, 0, 1, 0, -1])
                found.append(c.fetch(c.expect('result')).view(complex).reshape(8, -1))
    for other in found[1:]:
        for one, two in zip(found[0], other):
            assert np.abs(one - two).max() < 1e-10 * np.abs(one).max(), (one, two)


@tap.test
def correlators_that_a_double_cannot_hold_are_refused(case):
    with case.daemon() as d, Client(d) as c:
        for scale, said in (1e-170, 'too small for f64'), (1e-120, ''), (0, ''):
            fields = [scale * case.point(i) for i in range(3)]
            a = c.submit(3, tol=1e-10, sink=qk.SINK_KEEP)
            c.upload(a, fields)
            assert all(r.status == 0 for r in c.results(3))
            c.contract(a.request, channel=[qk.Channel(kind=qk.CHANNEL_MESON, sink=15, source=15)], origin=[0, 0, 0, 0])
            r = c.expect('result')
            assert said in r.text and bool(r.status) == bool(said), (scale, r)


def smeared(case, x, alpha, steps):
    """(x + alpha sum_j [U_j(n) x(n+j) + U_j(n-j)^+ x(n-j)]) / (1 + 6 alpha), j = x, y, z, `steps` times: without signs."""
    x = case.field(x)
    for _ in range(steps):
        hop = 0
        for u, axis in zip(case.links[:3], AXIS):
            hop = hop + np.einsum('...ab,...b->...a', u, np.roll(x, -1, axis)) + np.roll(np.einsum('...ba,...b->...a', u.conj(), x), 1, axis)
        x = (x + alpha * hop) / (1 + 6 * alpha)
    return x


@tap.test
def sources_and_sinks_are_smeared(case):
    """On each way to cut the lattice; of a correlator of two propagators both sinks."""
    grids = ('1x1x1x%s', '1x1x%sx1')
    points = [qk.Column(x=1, y=2, z=3, t=2, colour=i) for i in range(3)]
    of_source, of_sink = qk.Smearing(alpha=0.4, steps=3), qk.Smearing(alpha=-0.6, steps=2)
    for grid in grids:
        with case.daemon('--grid', grid % case.ranks, '--slots', '2') as d, Client(d) as c:
            c.submit(3, source=qk.SOURCE_POINT, column=points, work=qk.WORK_SMEAR, smear=of_source)
            sources = fetch_all(c, 3)
            for i, b in enumerate(sources):
                assert np.linalg.norm(case.field(b) - smeared(case, case.point(i), 0.4, 3)) < 1e-14, grid
            kept = [c.submit(3, source=qk.SOURCE_POINT, column=points, tol=1e-12, sink=qk.SINK_KEEP, **more) for more in ({'smear': of_source}, {})]
            found = {(k.request, r.rhs): c.fetch(r) for k in kept for r in c.results(3)}
            for i, b in enumerate(sources):
                assert case.residual(found[kept[0].request, i], b) < 1.01e-12
            c.contract(kept[0].request, request_b=kept[1].request, channel=[qk.Channel(kind=qk.CHANNEL_MESON, sink=15, source=15)], origin=[1, 2, 3, 2],
                       sink=of_sink)
            r = c.expect('result')
            assert r.status == 0, r
            a, b = ([smeared(case, found[k.request, i], -0.6, 2) for i in range(3)] for k in kept)
            want = np.roll(sum((y.conj() * x).sum((1, 2, 3, 4)) for x, y in zip(a, b)), -2)
            assert np.allclose(c.fetch(r).view(complex), want, rtol=0, atol=1e-12 * np.abs(want).max()), grid


def shifted(case, x, directions):
    """D_j x = [U_j(n) x(n+j) + U_j(n-j)^+ x(n-j)] / 2 once for each of the directions, the mean over all orders."""
    def once(x, j):
        u, axis = case.links[j], AXIS[j]
        return (np.einsum('...ab,...b->...a', u, np.roll(x, -1, axis)) + np.roll(np.einsum('...ba,...b->...a', u.conj(), x), 1, axis)) / 2
    orders = list(itertools.permutations(j for j in range(3) if directions >> j & 1))
    return sum(functools.reduce(once, order, case.field(x)) for order in orders) / len(orders)


def taste_sign(case, spin, taste, origin):
    """W(y)^+ G_spin W(y + d) G_taste^+ as numbers of a bilinear's sign, at y = x - x0 over that at 0, with (-1)^y of the antiquark, times G_spin^2: from
    how the factors anticommute, one after the other."""
    def product(word):
        sign, word = 1, list(word)
        for i in range(len(word)):
            for j in range(len(word) - 1 - i):
                if word[j] > word[j + 1]:
                    word[j], word[j + 1], sign = word[j + 1], word[j], -sign
        return sign, [mu for mu in range(4) if word.count(mu) % 2]
    bits = lambda n: [mu for mu in range(4) if n >> mu & 1]
    def number(y):
        w = [mu for mu in range(4) for _ in range(y[mu])]
        ahead = [mu for mu in range(4) for _ in range(y[mu] + ((spin ^ taste) >> mu & 1))]
        sign, left = product(w[::-1] + bits(spin) + ahead + bits(taste)[::-1])
        assert not left
        return sign
    t, z, y, x = np.indices(case.lattice)
    at = [(c - o) % 2 for c, o in zip((x, y, z, t), origin)]
    table = np.array([number(s) * number((0, 0, 0, 0)) * (-1) ** sum(s) for s in itertools.product(range(2), repeat=4)]).reshape(2, 2, 2, 2)
    return table[tuple(at)] * product(bits(spin) * 2)[0]


TASTES = {1: [(15, 14), (7, 6), (1, 0)], 2: [(15, 13), (5, 7)], 4: [(7, 3)], 3: [(15, 12), (7, 4), (2, 1)], 5: [(15, 10)], 6: [(15, 9), (7, 1)], 7: [(15, 8), (7, 0)]}


@tap.test
def tastes_are_shifted_at_source_and_sink(case):
    """Sources, sinks and signs by numpy, on each way to cut the lattice, smeared and not."""
    points = [qk.Column(x=1, y=2, z=3, t=2, colour=i) for i in range(3)]
    for grid, smears in (('1x1x1x%s', True), ('1x1x%sx1', False)):
        gauss = {'alpha': 0.4, 'steps': 2} if smears else {'alpha': 0, 'steps': 0}
        with case.daemon('--grid', grid % case.ranks, '--slots', '2') as d, Client(d) as c:
            plain = c.submit(3, source=qk.SOURCE_POINT, column=points, tol=1e-12, sink=qk.SINK_KEEP, smear=qk.Smearing(**gauss))
            b = fetch_all(c, 3)
            for directions, mesons in TASTES.items():
                smear = qk.Smearing(shift=directions, **gauss)
                c.submit(3, source=qk.SOURCE_POINT, column=points, work=qk.WORK_SMEAR, smear=smear)
                for i, source in enumerate(fetch_all(c, 3)):
                    want = smeared(case, shifted(case, case.point(i), directions), gauss['alpha'], gauss['steps'])
                    assert np.linalg.norm(case.field(source) - want) < 1e-14, (grid, directions)
                kept = c.submit(3, source=qk.SOURCE_POINT, column=points, tol=1e-12, sink=qk.SINK_KEEP, smear=smear)
                a = fetch_all(c, 3)
                c.contract(kept.request, request_b=plain.request, channel=[qk.Channel(kind=qk.CHANNEL_MESON, sink=s, source=t) for s, t in mesons],
                           origin=[1, 2, 3, 2], sink=qk.Smearing(**gauss))
                r = c.expect('result')
                assert r.status == 0, r
                found = c.fetch(r).view(complex).reshape(len(mesons), -1)
                ends = [[smeared(case, x, gauss['alpha'], gauss['steps']) for x in p] for p in (a, b)]
                for (spin, taste), got in zip(mesons, found):
                    sign = taste_sign(case, spin, taste, (1, 2, 3, 2))[..., None]
                    want = np.roll(sum((sign * y.conj() * shifted(case, x, directions)).sum((1, 2, 3, 4)) for x, y in zip(*ends)), -2)
                    assert np.abs(got - want).max() < 1e-12 * np.abs(want).max(), (grid, spin, taste, got, want)
                c.send(release=qk.Release(request=kept.request))


@tap.test
def a_killed_quarkd_loses_nothing(case):
    more = dict(source=qk.SOURCE_POINT, column=[qk.Column(x=1, y=2, z=3, t=2, colour=i) for i in range(3)], tol=1e-10)
    with State(case) as state:
        with state.daemon('--slots', '1') as d, Client(d) as c:
            c.submit(3, **more)
            kill(d)
        with state.daemon('--slots', '1') as d, Client(d, c.client_id) as c2:
            once_more(c2, 3, 1, **more)
            for r in results_of(c2, 1, 3):
                assert r.status == 0 and case.residual(c2.fetch(r), case.point(r.rhs)) < 1.01e-10


tap.run(Staggered(*sys.argv[1:]))
