"""Private setups that are loaded again, with the real engine and in Python: test_in_place.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import os
import re
import signal
import sys
import tempfile
import threading
import time

from cli_case import CSW, KAPPA, SHAPE, Case, np, random_sources, tap
import quarkd


def links(seed, shape=SHAPE[:4]):
    """SU(3) links [t, z, y, x, mu, 3, 3] near 1."""
    rng = np.random.default_rng(seed)
    q, r = np.linalg.qr(np.eye(3) + 0.1 * rng.normal(size=shape + (4, 3, 3, 2)) @ np.array([1, 1j]))
    q = q * (np.einsum('...ii->...i', r) / abs(np.einsum('...ii->...i', r)))[..., None, :]
    return q / np.linalg.det(q)[..., None, None] ** (1 / 3)


def engines(d):
    """Pids of the engines of the daemon, the oldest first."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/stat' % pid, encoding='utf-8') as f:
                name, rest = f.read().rsplit(')', 1)
        except OSError:
            continue
        if 'quark-engine' in name and int(rest.split()[1]) == d.process.pid and rest.split()[0] != 'Z':
            found.append(int(pid))
    return sorted(found)


U = [links(1), links(2), links(3, (8, 8, 8, 8))]
#        links, terms
TERMS = [(0, dict(kappa=KAPPA, csw=CSW)), (1, dict(kappa=KAPPA, csw=CSW)), (1, dict(kappa=0.11, csw=0)), (2, dict(kappa=KAPPA, csw=CSW)),
         (0, dict(kappa=0.125, csw=1.0, solver='gcr', precision='double')), (0, dict(kappa=KAPPA, csw=CSW))]


def source(k):
    return np.random.default_rng(9).normal(size=U[k].shape[:4] + (4, 3, 2)) @ np.array([1, 1j])


def solve(q, k, terms):
    setup = q.setup('mine', gauge=q.upload_gauge(U[k]), **terms)
    assert setup.state == 'ready' and setup.dims == U[k].shape[3::-1], setup
    return q.solve(source(k), tol=1e-9, setup='mine')


@tap.test
def the_same_name_stays_in_its_engine_with_the_bits_of_a_fresh_daemon(case):
    """Meanwhile another user's setup solves, and each time to the same bits."""
    want = []
    for k, terms in TERMS:
        with case.daemon() as d:
            d.wait_listening()
            with quarkd.connect(d.endpoint) as q:
                want.append(solve(q, k, terms))
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q, quarkd.connect(d.endpoint, user='else') as other:
            theirs = other.setup('theirs', gauge=other.upload_gauge(U[1]), kappa=KAPPA, csw=CSW)
            b, seen, stop = source(1), [], threading.Event()

            def go_on():
                while not stop.is_set():
                    seen.append(other.solve(b, tol=1e-9, setup=theirs))
            beside = threading.Thread(target=go_on)
            beside.start()
            try:
                got = [solve(q, *TERMS[0])]
                pids = engines(d)
                assert len(pids) == 3, pids
                got += [solve(q, *t) for t in TERMS[1:]]
            finally:
                stop.set()
                beside.join()
            assert engines(d) == pids
            for x, y, t in zip(got, want, TERMS):
                assert np.array_equal(x, y), t
            assert len(seen) > 1 and all(np.array_equal(x, want[1]) for x in seen)
            q.drop('mine')


@tap.test
def what_cannot_be_loaded_in_place_says_why(case):
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            want = solve(q, *TERMS[0])
            wrong = q.upload_gauge(U[1], plaquette=0.5)
            try:
                q.setup('mine', gauge=wrong, kappa=KAPPA, csw=CSW)
                raise AssertionError('it states another plaquette')
            except quarkd.Error as e:
                assert 'states 0.5' in str(e), e
            assert next(s for s in q.setups() if s.name == 'mine').state == 'failed'
            assert np.array_equal(solve(q, *TERMS[0]), want)


@tap.test
def an_engine_that_is_killed_while_it_loads_in_place_is_started_again(case):
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            solve(q, *TERMS[0])
            want = solve(q, *TERMS[3])
            for pause in 0, 0.01, 0.1:
                solve(q, *TERMS[0])
                q.setup('mine', gauge=q.upload_gauge(U[2]), wait=False, **TERMS[3][1])
                time.sleep(pause)
                os.kill(engines(d)[-1], signal.SIGKILL)
                assert np.array_equal(solve(q, *TERMS[3]), want)


@tap.test
def multigrid_is_set_up_anew_and_comes_back_from_its_checkpoint(case):
    """The old one's is written before its engine goes on."""
    with tempfile.TemporaryDirectory() as folder:
        with case.daemon('--mg-checkpoint=' + folder, '--mg-vectors=8', '--mg-setup-iterations=10') as d:
            d.wait_listening()
            with quarkd.connect(d.endpoint) as q:
                out, pids = [], []
                for kappa in 0.12, 0.115, 0.12:
                    setup = q.setup('mine', gauge=q.upload_gauge(U[2]), kappa=kappa, csw=CSW, solver='mg')
                    pids.append(engines(d))
                    out.append(q.solve(source(2), tol=1e-9, setup=setup))
            assert pids[0] == pids[1] == pids[2] and len(pids[0]) == 2, pids
            assert np.linalg.norm(out[0] - out[2]) < 1e-8 * np.linalg.norm(out[0]) < np.linalg.norm(out[0] - out[1])
            names = [n for n in os.listdir(folder) if re.fullmatch('multigrid-[0-9a-f]{16}', n)]
            assert len(names) == 2 and sum('restored in' in line for line in d.log) == 1, (names, d.log[-20:])


tap.run(Case(*sys.argv[1:]))
