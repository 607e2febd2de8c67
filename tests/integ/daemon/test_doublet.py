#!/usr/bin/env python3
"""Doublets of two flavours through the daemon, judged by the numpy oracle: test_doublet.py QUARKD QUARK_ENGINE QUARK_GAUGE"""
import sys

import tap

try:
    import numpy as np
    import ref_dirac as ref
    from daemon_case import CSW, GAUGE, MASS, DaemonCase
    from front_case import State, kill, once_more
    from front_driver import Client, Daemon, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

MU, EPSILON = 0.4, 0.3
MULTIGRID = ('--solver', 'mg', '--precision', 'single', '--mg-vectors', '8', '--mg-setup-iterations', '20')


class Doublets(DaemonCase):
    def __init__(self, *programs):
        super().__init__(*programs)
        self.bc = 1, 1, 1, -1
        self.op = self.oracle()
        self.shape = self.op.shape

    def oracle(self, mu=MU, epsilon=EPSILON, csw=CSW):
        return ref.ACTIONS['doublet'](self.links, self.bc, mass=MASS, mu=mu, epsilon=epsilon, csw=csw)

    def daemon(self, *options, action='doublet', mu=MU, epsilon=EPSILON, csw=CSW, **more):
        more = {'engine': self.engine, 'gauge': GAUGE, 'mass': str(MASS), **more}
        values = {'mu': mu, 'csw': csw, **({'epsilon': epsilon} if action == 'doublet' else {})}
        settings = [s for item in values.items() for s in ('--set', '%s=%r' % item)]
        return Daemon(self.binary, '--action', action, *settings, '--ranks', self.ranks, *options, **more)

    def lasting_engine(self, _):
        return self.engine


def solve(c, fields, tol=1e-10, **more):
    accepted = c.submit(len(fields), tol=tol, **more)
    c.upload(accepted, fields)
    found = [None] * len(fields)
    for r in c.results(len(fields)):
        assert r.status == 0, r
        found[r.rhs] = c.fetch(r)
    c.ack(accepted.request)
    return found


def check_solver(case, *options):
    with case.daemon('--slots', '5', *options) as d, Client(d) as c:
        fields = [case.noise(s) for s in range(7)]
        for x, b in zip(solve(c, fields), fields):
            assert case.residual(x, b) < 1.01e-10
        assert case.residual(solve(c, fields[:1])[0], fields[0]) < 1.01e-10, 'alone'


for NAME, OPTIONS in (('bicgstab', ('--precision', 'half')), ('cg', ('--precision', 'single')), ('gcr', ('--precision', 'double'))):
    def body(case, options=('--solver', NAME, *OPTIONS)):
        check_solver(case, *options)
    body.__name__ = 'solutions_of_%s_are_those_of_the_oracle' % NAME
    tap.test(body)


@tap.test
def solutions_of_multigrid_are_those_of_the_oracle(case):
    check_solver(case, *MULTIGRID)


@tap.test
def multigrid_iterates_in_half_too(case):
    check_solver(case, *MULTIGRID[:2], '--precision', 'half', *MULTIGRID[4:])
    check_solver(case, *MULTIGRID[:2], '--precision', 'half', '--mg-smoother-precision', 'half', *MULTIGRID[4:])


@tap.test
def deflation_is_refused(case):
    with case.daemon('--slots', '2', *MULTIGRID, '--mg-deflate', '8', wait=None) as d:
        assert d.wait() != 0
        assert any('mg-deflate = 8' in line for line in d.lines), d.lines


@tap.test
def a_right_hand_side_has_the_same_bits_whoever_is_beside_it(case):
    with case.daemon('--slots', '6', '--single-rhs-solver', 'no', *MULTIGRID) as d, Client(d) as c:
        fields = [case.noise(s) for s in range(6)]
        alone = [solve(c, [b])[0] for b in fields[:2]]
        for x, y in zip(alone, solve(c, fields)):
            assert np.array_equal(x, y)


@tap.test
def without_a_clover_term_too(case):
    op = case.oracle(csw=0.0)
    with case.daemon('--slots', '2', csw=0.0) as d, Client(d) as c:
        b = case.noise(3)
        x = solve(c, [b])[0].reshape(op.shape)
        assert np.linalg.norm(b.reshape(op.shape) - op.apply(x)) < 1.01e-10 * np.linalg.norm(b)


@tap.test
def without_a_splitting_the_flavours_are_those_of_twisted_clover(case):
    b = case.noise(4)
    with case.daemon('--slots', '2', epsilon=0.0) as d, Client(d) as c:
        both = solve(c, [b], tol=1e-12)[0].reshape(2, -1)
    with case.daemon('--slots', '2', action='twisted-clover') as d, Client(d) as c:
        for k, flavour in enumerate((1, -1)):
            one = solve(c, [b.reshape(2, -1)[k]], tol=1e-12, flavour=flavour)[0]
            assert np.linalg.norm(both[k] - one) < 1e-10 * np.linalg.norm(one), flavour


def point(case, site, flavour, spin, colour):
    x, y, z, t = site
    b = np.zeros(case.shape, complex)
    b[0 if flavour > 0 else 1, t, z, y, x, spin, colour] = 1
    return b


@tap.test
def generated_sources_stand_in_the_flavour_that_was_asked_for(case):
    site = 1, 2, 3, 5
    with case.daemon('--slots', '4') as d, Client(d) as c:
        for flavour, spin, colour in (1, 2, 1), (-1, 0, 2), (0, 3, 0):
            column = qk.Column(x=1, y=2, z=3, t=5, spin=spin, colour=colour, flavour=flavour)
            c.submit(1, source=qk.SOURCE_POINT, tol=1e-10, column=[column])
            r = c.expect('result')
            assert r.status == 0 and case.residual(c.fetch(r), point(case, site, flavour or 1, spin, colour)) < 1.01e-10
        found = {}
        for flavour in 1, -1, 0:
            c.submit(1, source=qk.SOURCE_Z4, tol=1e-10, column=[qk.Column(t=-1, spin=-1, colour=-1, seed=9, flavour=flavour)])
            r = c.expect('result')
            assert r.status == 0, r
            found[flavour] = case.op.apply(c.fetch(r))
        noise = found[0]
        assert np.allclose(abs(noise), 1, atol=1e-7) and abs(np.vdot(noise[0], noise[1])) < 0.1 * np.vdot(noise[0], noise[0]).real
        for k, flavour in enumerate((1, -1)):
            assert np.allclose(found[flavour][k], noise[k], atol=1e-7) and np.allclose(found[flavour][1 - k], 0, atol=1e-7)


@tap.test
def smearing_smears_each_flavour(case):
    """Of an uploaded source, as that of a point in each flavour."""
    smear = qk.Smearing(alpha=0.2, steps=4)
    with case.daemon('--slots', '4') as d, Client(d) as c:
        both = point(case, (1, 2, 3, 5), 1, 2, 1) - 2 * point(case, (0, 0, 0, 1), -1, 0, 0)
        whole = case.op.apply(solve(c, [both.ravel()], tol=1e-11, smear=smear)[0])
        parts = 0
        for factor, column in ((1, qk.Column(x=1, y=2, z=3, t=5, spin=2, colour=1)), (-2, qk.Column(t=1, flavour=-1))):
            c.submit(1, source=qk.SOURCE_POINT, tol=1e-11, column=[column], smear=smear)
            r = c.expect('result')
            assert r.status == 0, r
            parts = parts + factor * case.op.apply(c.fetch(r))
        assert np.linalg.norm(whole - parts) < 1e-9 * np.linalg.norm(parts) and (abs(whole) > 1e-6).sum(axis=(1, 2, 3, 4, 5, 6)).min() > 20


@tap.test
def a_number_that_is_none_is_found_in_its_flavour(case):
    with case.daemon('--slots', '2') as d, Client(d) as c:
        b = case.noise(1).reshape(case.shape)
        b[1, 2, 1, 3, 0, 1, 2] = np.nan
        accepted = c.submit(1)
        c.upload(accepted, [b.ravel()])
        r = c.expect('result')
        assert r.status != 0 and 'x y z t = 0 3 1 2, spin 1, colour 2, lower flavour' in r.text, r


def refusal(c):
    return c.expect('rejected', skip=('progress', 'credit', 'result')).text


@tap.test
def what_is_not_defined_is_refused(case):
    with case.daemon('--slots', '2') as d, Client(d) as c:
        kept = c.submit(1, source=qk.SOURCE_POINT, sink=qk.SINK_KEEP, tol=0.1, column=[qk.Column(flavour=-1)]).request
        assert c.expect('result').status == 0
        c.contract(kept, expect=None)
        assert '48 real numbers' in refusal(c)
        c.submit(1, source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=kept, t=-1)], expect=None)
        assert '48 real numbers' in refusal(c)
        c.submit(1, source=qk.SOURCE_POINT, column=[qk.Column(flavour=2)], expect=None)
        assert 'flavour = 2' in refusal(c)
    with case.daemon('--slots', '2', action='twisted-clover') as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT, column=[qk.Column(flavour=-1)], expect=None)
        assert 'flavour = -1' in refusal(c)


@tap.test
def a_local_term_that_is_singular_is_refused_by_name(case):
    """A^2 + mu^2 - epsilon^2 must be positive, with a clover term on every site."""
    for csw, text in (0.0, 'must be below'), (CSW, 'is not positive there'):
        with case.daemon('--slots', '2', epsilon=9.0, csw=csw, wait=None) as d:
            assert d.wait() != 0
            assert any(text in line for line in d.lines), d.lines


@tap.test
def the_next_daemon_solves_for_the_flavour_that_was_asked_for(case):
    """Of what waited when a front was killed: by the journal, with an engine that is taken over."""
    endless, column = dict(source=qk.SOURCE_Z4, tol=1e-100, max_iter=10 ** 8), [qk.Column(x=1, y=2, z=3, t=5, spin=1, colour=2, flavour=-1)]
    options = '--slots', '1', '--single-rhs-solver', 'no'
    with State(case) as state, state.fronts() as front:
        with front(*options) as d, Client(d) as c:
            c.submit(1, **endless)
            d.status_when(lambda s: s.counters.running == 1)
            c.submit(1, source=qk.SOURCE_POINT, tol=1e-10, column=column)
            kill(d)
        with front(*options) as d, Client(d, c.client_id) as c2:
            once_more(c2, 1, 2, source=qk.SOURCE_POINT, tol=1e-10, column=column)
            c2.send(cancel=qk.Cancel(request=1))
            r = c2.result_of(2)  # request 1 may have ended by itself, before c2 was there to see it
            assert r.status == 0 and case.residual(c2.fetch(r), point(case, (1, 2, 3, 5), -1, 1, 2)) < 1.01e-10, r
            for request in 1, 2:
                c2.ack(request)
            assert d.terminate() == 0


tap.run(Doublets(*sys.argv[1:]))
