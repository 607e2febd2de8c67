#!/usr/bin/env python3
"""Several masses of staggered fermions by one request, judged by numpy: test_masses.py QUARKD QUARK_ENGINE QUARK_GAUGE RANKS"""
import os
import signal
import sys
import time

import tap

try:
    import numpy as np
    from front_case import State, kill, once_more
    from front_driver import Client, qk
    from staggered_case import Staggered, fetch_all, solve
    from state_case import results_of
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

MASSES = 0.2, 0.05, 0.8, 0.1
BAD_ARGUMENT, TOO_LARGE, UNSUPPORTED, NAN_INPUT, CANCELLED = 100, 107, 108, 202, 203


def points(n=3):
    return dict(source=qk.SOURCE_POINT, column=[qk.Column(x=1, y=2, z=3, t=2, colour=i) for i in range(n)], tol=1e-10)


def check(case, found, sources, tol=1e-10):
    n = len(sources)
    for i, x in enumerate(found):
        off = case.residual(x, sources[i % n], MASSES[i // n])
        assert off < 1.01 * tol, (i, off)


@tap.test
def each_mass_is_solved(case):
    """Right-hand side i has the mass i / n and the source i % n, in each precision; points on one parity, noise on both."""
    for precision in 'double', 'single', 'half':
        with case.daemon('--precision', precision, '--slots', '2') as d, Client(d) as c:
            c.submit(12, masses=MASSES, **points())
            check(case, fetch_all(c, 12), [case.point(i) for i in range(3)])
            noise = [qk.Column(seed=5, t=-1, spin=-1, colour=-1)]
            c.submit(1, source=qk.SOURCE_Z4, column=noise, work=qk.WORK_SMEAR)
            b = fetch_all(c, 1)[0]
            c.submit(4, source=qk.SOURCE_Z4, column=noise, masses=MASSES, tol=1e-10)
            check(case, fetch_all(c, 4), [b])


@tap.test
def results_are_those_of_each(case):
    """Iterations and residual are of one mass; the lightest takes the most, and one Krylov space serves all."""
    with case.daemon('--slots', '2') as d, Client(d) as c:
        c.submit(12, masses=MASSES, **points())
        results = sorted(c.results(12), key=lambda r: r.rhs)
        assert all(r.status == 0 and 0 < r.true_residual <= 1e-10 and r.iterations > 0 for r in results), results
        iterations = [max(r.iterations for r in results if r.rhs // 3 == k) for k in range(4)]
        assert iterations[1] == max(iterations) > iterations[2], iterations
        assert all(abs(r.norm_b - 1) < 1e-14 and r.norm_x > 0 for r in results)
        assert sum(r.applications for r in results) < 0.7 * sum(r.iterations for r in results)


@tap.test
def uploads_are_shared(case):
    """The same numbers sent for each mass are one source, others are other ones; twice divides solutions by two."""
    with case.daemon('--slots', '1') as d, Client(d) as c:
        a, b = case.noise(1), case.noise(2)
        check(case, solve(c, [a, b] * 4, masses=MASSES), [a, b])
        found = solve(c, [a, b], masses=MASSES[:2], normalisation=qk.NORMALISATION_TWICE)
        assert case.residual(2 * found[0], a, MASSES[0]) < 1.01e-10 and case.residual(2 * found[1], b, MASSES[1]) < 1.01e-10


@tap.test
def a_mass_alone_is_the_same(case):
    with case.daemon() as d, Client(d) as c:
        b = case.noise(3)
        alone, together = solve(c, [b], masses=MASSES[:1], tol=1e-12)[0], solve(c, [b] * 4, masses=MASSES, tol=1e-12)[0]
        assert np.linalg.norm(alone - together) < 1e-10 * np.linalg.norm(alone)


@tap.test
def extreme_sources_end_as_others_do(case):
    with case.daemon('--slots', '2') as d, Client(d) as c:
        b = case.noise(3)
        for factor in 1e-200, 1e200:
            for k, x in enumerate(solve(c, [factor * b] * 2, masses=MASSES[:2])):
                assert case.residual(x / factor, b, MASSES[k]) < 1.01e-10, factor
        assert not any(np.any(x) for x in solve(c, [0 * b] * 2, masses=MASSES[:2]))
        bad = b.copy()
        bad[7] = np.nan
        accepted = c.submit(4, masses=MASSES[:2], tol=1e-10)
        c.upload(accepted, [b, bad] * 2)
        for r in c.results(4):
            assert r.status == (0 if r.rhs % 2 == 0 else NAN_INPUT), r


def upload_some(c, accepted, fields, which):
    for i in which:
        c.data.send(c.piece(accepted.request, i, fields[i].tobytes(), 0, fields[i].nbytes))


@tap.test
def uploads_on_the_disk_wait_for_their_block(case):
    """What is on the disk before the last of its block is there is solved once, with it, whatever the journal is at then."""
    b = [case.noise(k) for k in range(3)] * 2
    for spool in 'waiting', 'all':
        with State(case) as state, state.daemon('--slots', '2', '--spool', spool) as d, Client(d) as c:
            for k in range(12 if case.ranks == '1' else 4):
                accepted = c.submit(6, masses=MASSES[:2], tol=1e-6)
                upload_some(c, accepted, b, range(5))
                time.sleep(0.002 * k)
                upload_some(c, accepted, b, [5])
                check(case, fetch_all(c, 6), b[:3], 1e-6)
            assert d.process.poll() is None


@tap.test
def who_ends_before_it_is_there_keeps_nobody_waiting(case):
    """A right-hand side of a block that is cancelled in the middle of its upload: the others of the block are solved."""
    b = [case.noise(k) for k in range(3)] * 2
    with case.daemon() as d, Client(d) as c:
        accepted = c.submit(6, masses=MASSES[:2], tol=1e-10)
        upload_some(c, accepted, b, range(5))
        time.sleep(0.3)
        c.send(cancel=qk.Cancel(request=accepted.request, rhs=[5]))
        for r in c.results(6):
            assert r.status == (CANCELLED if r.rhs == 5 else 0), r
            if r.rhs != 5:
                assert case.residual(c.fetch(r), b[r.rhs], MASSES[r.rhs // 3]) < 1.01e-10, r


@tap.test
def many_masses_and_sources_go_in_blocks(case):
    """More than fit into one block, of which some are cancelled."""
    masses = [0.1 + 0.05 * k for k in range(16)]
    with case.daemon('--slots', '1') as d, Client(d) as c:
        accepted = c.submit(48, masses=masses, **points())
        c.send(cancel=qk.Cancel(request=accepted.request, rhs=[0, 17, 47]))
        for r in c.results(48):
            if r.rhs in (0, 17, 47) and r.status != 0:
                continue
            assert r.status == 0, r
            assert case.residual(c.fetch(r), case.point(r.rhs % 3), masses[r.rhs // 3]) < 1.01e-10


@tap.test
def what_cannot_be_is_refused(case):
    with case.daemon() as d, Client(d) as c:
        for more, status, words in ((dict(masses=[0.1] * 2), BAD_ARGUMENT, 'masses[1] = 0.1'), (dict(masses=[0.1, -1]), BAD_ARGUMENT, 'masses[1] = -1'),
                                    (dict(masses=[0.1, float('nan')]), BAD_ARGUMENT, 'masses[1] = '), (dict(masses=[0.1 * (k + 1) for k in range(17)]), TOO_LARGE, '17'),
                                    (dict(masses=[0.1, 0.2, 0.3, 0.4]), BAD_ARGUMENT, 'nrhs = 6'), (dict(masses=[0.1, 0.2], tol_abs=1e-9), BAD_ARGUMENT, 'tol_abs'),
                                    (dict(masses=[0.1, 0.2], work=qk.WORK_M), BAD_ARGUMENT, 'work = 1'),
                                    (dict(masses=[0.1, 0.2], normalisation=qk.NORMALISATION_KAPPA), BAD_ARGUMENT, 'normalisation')):
            rejected = c.submit(6, expect='rejected', **{**points(), **more})
            assert rejected.status == status and words in rejected.text, rejected
        assert not c.submit(2, masses=MASSES[:2], **points(1)).repeated_submit
        fetch_all(c, 2)
    with case.daemon('--action', 'wilson', '--solver', 'auto') as d, Client(d) as c:
        rejected = c.submit(2, masses=MASSES[:2], **points(1), expect='rejected')
        assert rejected.status == UNSUPPORTED and 'wilson' in rejected.text, rejected


@tap.test
def a_killed_engine_loses_nothing(case):
    with case.daemon('--slots', '2') as d, Client(d) as c:
        c.submit(12, masses=MASSES, **{**points(), 'tol': 1e-12})
        os.kill(d.status().engine.pid, signal.SIGKILL)
        check(case, fetch_all(c, 12), [case.point(i) for i in range(3)], 1e-12)


@tap.test
def a_killed_quarkd_loses_nothing(case):
    more = dict(masses=MASSES, **points())
    with State(case) as state:
        with state.daemon('--slots', '1') as d, Client(d) as c:
            c.submit(12, **more)
            kill(d)
        with state.daemon('--slots', '1') as d, Client(d, c.client_id) as c2:
            once_more(c2, 12, 1, **more)
            found = [None] * 12
            for r in results_of(c2, 1, 12):
                assert r.status == 0, r
                found[r.rhs] = c2.fetch(r)
            check(case, found, [case.point(i) for i in range(3)])


tap.run(Staggered(*sys.argv[1:]))
