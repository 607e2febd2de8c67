"""The Python package quarkd with a real daemon: test_python.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import asyncio
import doctest
import importlib
import os
import signal
import subprocess
import sys
import threading
import time

from cli_case import Case, h5py, np, random_sources, read_field, tap
import quarkd
from quarkd import io

MODULES = 'analysis arrays contract errors gamma gauge mpi notebook smearing source status terms'.split()


@tap.test
def solutions_are_those_of_the_oracle(case):
    b = random_sources(2)
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            x = q.solve(b, tol=1e-11)
            assert x.dtype == b.dtype and all(case.residual(*pair) < 1.01e-11 for pair in zip(x, b))
            y = q.solve(b[0].astype('complex64'), tol=1e-6)
            assert y.dtype == np.complex64 and case.residual(y, b[0]) < 1e-5
            done = list(quarkd.as_completed(q.submit_many(b)))
            assert sorted(f.rhs for f in done) == [0, 1] and done[0].result() is done[0].result()


@tap.test
def propagators_files_and_correlators_are_those_of_quarkctl(case):
    with case.daemon('--slots=12') as d:
        ours, theirs, corr = d.path('ours.h5'), d.path('theirs.h5'), d.path('corr.h5')
        assert d.ctl('propagator', '--source=point:1,2,3,5', '--tol=1e-12', '--out', theirs).code == 0
        assert d.ctl('correlator', '--source=point:1,2,3,5', '--tol=1e-12', '--channels=all', '--out', corr).code == 0
        with quarkd.connect(d.endpoint) as q:
            prop = q.propagator(quarkd.point(1, 2, 3, 5), tol=1e-12)
            view = prop[1, 2].numpy()
            assert np.shares_memory(view, prop[5].numpy()) and not view.flags.writeable and q.local
            c = prop.correlator('all')
            prop.to_hdf5(ours)
            here = quarkd.contract.correlators(prop.numpy(), 'all', origin=prop.origin)
        want = io.read_correlators(corr)[0]
        for name, channel in c.items():
            for other in want[name].values, here[name]:
                assert np.abs(channel.values - other).max() < 1e-10 * np.abs(channel.values).max(), name
        assert np.abs(read_field(ours) - read_field(theirs)).max() < 1e-11 and np.isfinite(view).all()
        with h5py.File(ours) as f, h5py.File(theirs) as g:
            assert f['columns'].dtype == g['columns'].dtype and set(g.attrs) == set(f.attrs), set(g.attrs) ^ set(f.attrs)


@tap.test
def a_bad_right_hand_side_fails_for_itself_alone(case):
    b = random_sources(3)
    b[1, 0, 0, 0, 0, 0, 0] = np.nan
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            f = q.submit_many(b)
            assert f[1].exception().name == 'NAN_INPUT' and case.residual(f[0].result(), b[0]) < 1.1e-10
            try:
                q.solve(b[0], max_iter=2)
                raise AssertionError('must not converge')
            except quarkd.ConvergenceError as e:
                assert e.residual > 1e-10 and e.solution.shape == b[0].shape
            pid = os.fork()
            if pid == 0:
                try:
                    q.status()
                except quarkd.ForkError:
                    os._exit(0)
                os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@tap.test
def threads_tasks_and_interrupts_share_a_connection(case):
    b = random_sources(1)[0]
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            good = []
            threads = [threading.Thread(target=lambda: good.append(case.residual(q.solve(b), b) < 1.1e-10)) for _ in range(32)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            assert good == [True] * 32

            async def wait_for(future):
                return await future

            async def tasks():
                a = quarkd.AsyncConnection(q)
                many = await a.submit_many(np.repeat(b[None], 100, 0))
                last = asyncio.ensure_future(wait_for(many[-1]))
                x = await a.solve(b, priority=9)
                last.cancel()
                await asyncio.wait([last])
                assert last.cancelled() and many[-1].info().status == 'CANCELLED', many[-1].info()
                return x
            assert case.residual(asyncio.run(tasks()), b) < 1.1e-10

            async def setups():
                async with quarkd.aconnect(d.endpoint) as a:
                    eye = await a.upload_gauge(np.broadcast_to(np.eye(3, dtype=complex), b.shape[:4] + (4, 3, 3)))
                    setup = await a.setup(gauge=eye, kappa=0.1, csw=0)
                    report = await a.ready(setup)
                    await a.drop(setup)
                    return report
            report = asyncio.run(setups())
            assert abs(report.setup['plaquette'] - 1) < 1e-12 and '\n' not in repr(report) and len(repr(report)) < 400, report
            try:
                q.solve(np.repeat(b[None], 200, 0), progress=lambda now: os.kill(os.getpid(), signal.SIGINT))
                raise AssertionError('was not interrupted')
            except KeyboardInterrupt:
                pass
            deadline = time.monotonic() + 10
            while q.status().engine['slots_busy'] or q.status().counters['queued']:
                assert time.monotonic() < deadline, q.status()


@tap.test
def bars_end_with_what_has_come_out(case):
    b, shown = random_sources(2), []
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            q.solve(b, tol=1e-10, progress=shown.append)
            assert shown[-1].ended == 2 and 0 < shown[-1].residual < 1.01e-10, shown[-1]


@tap.test
def the_package_has_its_files_without_a_further_import(case):
    done = subprocess.run([sys.executable, '-c', 'import quarkd; quarkd.io.read_field'], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr


@tap.test
def the_examples_of_the_documentation_hold(case):
    for name in MODULES:
        done = doctest.testmod(importlib.import_module('quarkd.' + name))
        assert done.attempted and not done.failed, (name, done)


tap.run(Case(*sys.argv[1:]))
