#!/usr/bin/env python3
"""Overlap fermions through quarkd, judged by numpy: test_overlap.py QUARKD QUARK_ENGINE QUARK_GAUGE RANKS"""
import os
import signal
import sys
import tempfile

import tap

try:
    import numpy as np
    import overlap_ref
    import ref_dirac as ref
    from daemon_case import DaemonCase
    from front_driver import Client, Daemon, qk
    from setups_case import drop, refused, wait_for
    from staggered_case import fetch_all, solve
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

GAUGE = 'builtin:weak:4x4x4x4:7'
M, MASS = 1.3, 0.2
MASSES = 0.4, 0.2, -0.3
BAD_ARGUMENT, UNSUPPORTED, NAN_INPUT, CANCELLED = 100, 108, 202, 203


def parameter(**more):
    values = {'M': M, 'modes': 8, **more}
    return [x for k, v in values.items() for x in ('--set', '%s=%s' % (k, v))]


class Overlap(DaemonCase):
    def __init__(self, *programs):
        super().__init__(*programs)
        with tempfile.TemporaryDirectory() as folder:
            self.links, _ = ref.load_any(self.convert(GAUGE, folder))
        self.shape = self.links.shape[1:5] + (4, 3)
        self.of = {m: overlap_ref.Overlap(self.links, (1, 1, 1, -1), m, M) for m in (*MASSES, MASS)}

    def daemon(self, *options, values=(), **more):
        return Daemon(self.binary, '--action', 'overlap', '--solver', 'cg', '--ranks', self.ranks, *parameter(**dict(values)), *options,
                      **{'engine': self.engine, 'gauge': GAUGE, 'mass': str(MASS), **more})

    def off(self, q, b, mass=MASS):
        b = b.reshape(self.shape)
        return np.linalg.norm(self.of[mass].residual(b, q)) / np.linalg.norm(b)

    def chiral(self, seed, sign):
        b = self.noise(seed).reshape(self.shape)
        b[(Ellipsis, slice(2, 4) if sign > 0 else slice(0, 2), slice(None))] = 0
        return b.ravel()


@tap.test
def solutions_are_those_of_the_oracle(case):
    """Random sources, of one chirality and of both, in one block."""
    with case.daemon('--slots', '3') as d, Client(d) as c:
        sources = [case.noise(1), case.chiral(2, 1), case.chiral(3, -1)]
        found = solve(c, sources, tol=1e-8)
    for q, b in zip(found, sources):
        assert case.off(q, b) < 1.01e-8, case.off(q, b)


@tap.test
def the_operator_itself_is_applied(case):
    b = case.noise(4)
    with case.daemon('--slots', '1') as d, Client(d) as c:
        y, = solve(c, [b], work=qk.WORK_M)
        z, = solve(c, [b], work=qk.WORK_M, dagger=True)
    exact = case.of[MASS].apply(b)
    g5 = np.repeat([1, 1, -1, -1], 3).reshape(4, 3)
    assert np.linalg.norm(y.reshape(exact.shape) - exact) < 1e-9 * np.linalg.norm(exact)
    exact = g5 * case.of[MASS].apply(g5 * b.reshape(exact.shape))
    assert np.linalg.norm(z.reshape(exact.shape) - exact) < 1e-9 * np.linalg.norm(exact)


@tap.test
def several_masses_are_solved_together(case):
    with case.daemon('--slots', '2') as d, Client(d) as c:
        sources = [case.noise(1), case.chiral(2, 1)]
        found = solve(c, sources * len(MASSES), tol=1e-8, masses=MASSES)
        alone, = solve(c, sources[:1], tol=1e-8)
    for i, q in enumerate(found):
        off = case.off(q, sources[i % 2], MASSES[i // 2])
        assert off < 1.01e-8, (i, off)
    assert np.linalg.norm(alone - found[2]) < 1e-6 * np.linalg.norm(alone)


@tap.test
def what_cannot_be_is_refused(case):
    with case.daemon('--slots', '1') as d, Client(d) as c:
        for masses, words in (([0.1, 0], 'masses[1] = 0'), ([0.1, 1], 'masses[1] = 1'), ([-1, 0.1], 'masses[0] = -1'), ([0.1, 1e-300], 'masses[1] = 1e-300'),
                              ([0.1, 0.1], 'masses[1] = 0.1'), ([0.1, float('nan')], 'masses[1] = nan')):
            r = c.submit(2, source=qk.SOURCE_POINT, column=[qk.Column()], tol=1e-8, masses=masses, expect='rejected')
            assert r.status == BAD_ARGUMENT and words in r.text, r
        bad = case.noise(1)
        bad[5] = np.nan
        accepted = c.submit(2, masses=MASSES[:2], tol=1e-8)
        c.upload(accepted, [bad] * 2)
        assert [r.status for r in c.results(2)] == [NAN_INPUT] * 2
        b = case.noise(2)
        q, = solve(c, [b], tol=1e-8)
    assert case.off(q, b) < 1.01e-8, 'the engine is not as before'


@tap.test
def eigenvectors_tell_the_index(case):
    """Links near 1 have none; the relation of eigenvalues of pairs."""
    with case.daemon('--slots', '1') as d, Client(d) as c:
        c.send(eigen=qk.Eigen(request=7, problem=qk.EigenProblem(name='low', kind=qk.EIGEN_GAMMA5, count=4, tol=1e-6)))
        c.expect('accepted')
        r, = c.results(1)
        assert r.status == 0, r
        h = np.frombuffer(c.fetch(r, np.float64).tobytes(), np.float64).reshape(-1, 2)[:, 0]
        assert np.all(abs(h) > MASS) and abs(h[0] + h[1]) < 1e-6 and abs(h[2] + h[3]) < 1e-6, h
        e, = d.status().setup.eigen
        assert e.HasField('zero_plus') and (e.zero_plus, e.zero_minus) == (0, 0), e
        c.send(eigen=qk.Eigen(request=8, problem=qk.EigenProblem(name='n', kind=qk.EIGEN_NORMAL, count=4, tol=1e-7)))
        c.expect('accepted')
        r, = c.results(1)
        assert r.status == UNSUPPORTED and 'overlap' in r.text and 'kind = 1, gamma5' in r.text, r


def keep(c, request, name, status=0, **problem):
    c.send(eigen=qk.Eigen(request=request, problem=qk.EigenProblem(name=name, kind=qk.EIGEN_GAMMA5, **problem)))
    c.expect('accepted')
    r, = c.results(1)
    assert r.status == status, r


@tap.test
def projected_eigenvectors_may_have_a_name(case):
    """Of the kernel, a Wilson operator: made once, and there for setups of any mass and for the engines that follow."""
    with tempfile.TemporaryDirectory(prefix='qk-overlap-') as state, \
            Daemon(case.binary, '--action', 'wilson', '--solver', 'cg', '--state', state, engine=case.engine, gauge=GAUGE, mass=str(-M)) as d, Client(d) as c:
        keep(c, 1, 'low', count=9, tol=1e-12)
        keep(c, 2, 'rough', count=9, tol=1e-3)

        def asked(mass=MASS, **more):
            values = dict(mass=mass, M=M, modes=8)
            values.update({k: more.pop(k) for k in list(more) if k in ('M', 'modes', 'links')})
            return qk.Load(name='chiral', gauge=GAUGE, action='overlap', solver='cg', slots=1, boundary='antiperiodic',
                           parameter=[qk.Setting(key=k, value=str(v)) for k, v in values.items()], **{'deflate_from': 'low', **more})
        for wrong, text in ((asked(modes=9), 'modes = 9: low of setup main has 9 vectors, and modes + 1 are needed'),
                            (asked(M=1.2), 'are of another operator: wilson;mass=-1.3, not wilson;mass=-1.2'),
                            (asked(links='stout:0.1,1'), 'of another operator'),
                            (asked(deflate_from='none'), 'no setup has eigenvectors of this name')):
            found = refused(c, 'NOT_FOUND' if wrong.deflate_from == 'none' else 'BAD_ARGUMENT', load=wrong)
            assert text in found, (text, found)
        c.send(load=asked(deflate_from='rough'))
        c.expect('setup')
        text = wait_for(d, 'chiral', qk.STATE_FAILED).text
        assert 'the lowest eigenvectors of H: rough: vector' in text and '--tol' in text, text
        drop(c, 'chiral')
        wait_for(d, 'chiral', None)
        c.send(load=asked())
        c.expect('setup')
        wait_for(d, 'chiral', qk.STATE_READY)
        s = d.status(setup='chiral')
        assert (s.setup.deflation.origin, s.setup.deflation.vectors, s.setup.sign.vectors) == ('low', 8, 8) and s.setup.sign.square < 1e-9, s
        b = case.noise(3)
        c.request = 10
        q, = solve(c, [b], tol=1e-8, setup='chiral')
        assert case.off(q, b) < 1.01e-8, case.off(q, b)
        c.send(eigen_drop=qk.EigenDrop(name='low'))
        c.expect('setup')
        os.kill(s.engine.pid, signal.SIGKILL)
        d.status_when(lambda now: now.state == qk.STATE_READY and now.engine.pid not in (0, s.engine.pid), setup='chiral')
        q, = solve(c, [b], tol=1e-8, setup='chiral')
        assert case.off(q, b) < 1.01e-8 and d.status(setup='chiral').setup.deflation.origin == 'low', case.off(q, b)


@tap.test
def two_clients_cancel_and_kill(case):
    """One cancels, the engine is killed, and the other one's are as they should be."""
    with case.daemon('--slots', '2') as d, Client(d) as a, Client(d, user='else') as b:
        sources = [case.noise(k) for k in (1, 2)]
        first = a.submit(6, tol=1e-9, masses=MASSES)
        a.upload(first, [case.chiral(4, 1)] * 6)
        second = b.submit(2, tol=1e-8)
        b.upload(second, sources)
        a.send(cancel=qk.Cancel(request=first.request))
        assert all(r.status in (0, CANCELLED) for r in a.results(6))
        os.kill(d.status().engine.pid, signal.SIGKILL)
        found = fetch_all(b, 2)
    for q, x in zip(found, sources):
        assert case.off(q, x) < 1.01e-8


tap.run(Overlap(*sys.argv[1:]))
