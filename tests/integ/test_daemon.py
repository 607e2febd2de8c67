#!/usr/bin/env python3
"""quarkd with the real engine, judged by the numpy oracle: test_daemon.py QUARKD QUARK_ENGINE QUARK_GAUGE [RANKS]"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'support'), os.path.join(HERE, '..', 'ref')]
import tap  # noqa: E402

try:
    import signal

    import numpy as np
    import ref_dirac as ref
    from front_driver import STATUS, Client, Daemon, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

DIMS, MASS, CSW = (4, 4, 8, 8), 0.1, 1.2
GAUGE = 'builtin:weak:%dx%dx%dx%d:7' % DIMS


class Case:
    def __init__(self, quarkd, engine, quark_gauge, ranks='1'):
        self.binary, self.engine, self.ranks = quarkd, engine, ranks
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'weak.lime')
            subprocess.run([quark_gauge, 'convert', GAUGE, path], check=True, stdout=subprocess.DEVNULL)
            links, _ = ref.load_any(path)
        self.op = ref.WilsonClover(links, MASS, CSW, (1, 1, 1, -1))
        self.shape = self.op.shape

    def daemon(self, *options, **more):
        more = dict(dict(engine=self.engine, gauge=GAUGE, mass=str(MASS)), **more)
        return Daemon(self.binary, '--csw', str(CSW), '--ranks', self.ranks, *options, **more)

    def residual(self, x, b):
        x, b = x.reshape(self.shape), b.reshape(self.shape)
        return np.linalg.norm(b - self.op.apply(x)) / np.linalg.norm(b)

    def noise(self, seed):
        n = int(np.prod(self.shape))
        return np.random.default_rng(seed).standard_normal(2 * n).view(complex)


@tap.test
def solutions_solve_the_equation(case):
    with case.daemon('--slots', '4') as d, Client(d) as c:
        fields = [case.noise(s) for s in range(6)]
        for (r, x), b in zip(c.solve(fields, tol=1e-10), fields):
            assert r.status == 0 and r.true_residual <= 1e-10, r
            assert abs(case.residual(x, b) - r.true_residual) < 1e-13
            assert abs(r.norm_b - np.linalg.norm(b)) < 1e-9 * r.norm_b
            assert abs(r.norm_x - np.linalg.norm(x)) < 1e-9 * r.norm_x
            assert r.iterations > 0 and r.applications > 0 and r.seconds > 0
        s = d.status_when(lambda s: s.counters.requests == 0)
        assert list(s.setup.dims) == list(DIMS) and s.engine.ranks == int(case.ranks) and s.memory_used == 0
        assert d.terminate() == 0


@tap.test
def generated_sources_are_what_an_upload_would_be(case):
    with case.daemon('--slots', '2') as d, Client(d) as c:
        b = np.zeros(case.shape, complex)
        b[7, 2, 1, 3, 2, 1] = 1  # [t, z, y, x, spin, colour]
        c.submit(1, source=qk.SOURCE_POINT, tol=1e-11, column=[qk.Column(x=3, y=1, z=2, t=7, spin=2, colour=1)])
        r = c.expect('result')
        x = c.fetch(r)
        assert r.status == 0 and case.residual(x, b) < 1.01e-11
        (r2, x2), = c.solve([b], tol=1e-11)
        assert np.linalg.norm(x - x2) < 1e-12
        (r3, x3), = c.solve([b], tol=1e-11, normalisation=qk.NORMALISATION_KAPPA)
        assert np.linalg.norm(x3 - (4 + MASS) * x) < 1e-11 * np.linalg.norm(x3)
        (r4, x4), = c.solve([b.astype(np.complex64)], np.complex64, tol=1e-6, dtype=qk.DTYPE_F32)
        assert r4.status == 0 and np.linalg.norm(x4 - x) < 1e-5 * np.linalg.norm(x)


@tap.test
def bad_sources_end_by_themselves(case):
    with case.daemon('--slots', '4') as d, Client(d) as c:
        nan, zero, good = case.noise(1), np.zeros(int(np.prod(case.shape)), complex), case.noise(2)
        nan[17] = complex(float('nan'), 0)
        (r0, x0), (r1, x1), (r2, x2) = c.solve([nan, zero, good])
        assert r0.status == STATUS['NAN_INPUT'] and x0 is None
        assert r1.status == 0 and r1.iterations == 0 and not x1.any()
        assert r2.status == 0 and case.residual(x2, good) < 1e-8
        (r, x), = c.solve([good], tol=1e-14, max_iter=2)
        assert r.status == STATUS['NOT_CONVERGED'] and abs(case.residual(x, good) - r.true_residual) < 1e-6
        assert d.status().state == qk.STATE_READY


# Large enough that the solver takes many times the interval of PROGRESS until it sees that nothing improves.
LONG = 'builtin:weak:12x12x12x16:7'


def noise_column(seed):
    return qk.Column(seed=seed, t=-1, spin=-1, colour=-1)


@tap.test
def a_killed_engine_comes_back(case):
    with case.daemon('--slots', '2', gauge=LONG) as d, Client(d) as c:
        c.submit(3, source=qk.SOURCE_Z4, tol=1e-100, max_iter=10 ** 8, column=[noise_column(k) for k in range(3)])
        s = d.status_when(lambda s: s.counters.running == 2 and s.counters.queued == 1)
        os.kill(s.engine.pid, signal.SIGKILL)
        lost = [c.expect('result') for _ in range(2)]
        assert all(r.status == STATUS['ENGINE_LOST'] for r in lost), lost
        d.log('ready: ', 2)
        c.send(cancel=qk.Cancel(request=1))
        assert c.expect('result').status == STATUS['CANCELLED']
        c.ack(1)
        again = c.submit(1, source=qk.SOURCE_Z4, sink=qk.SINK_NONE, tol=1e-10, column=[noise_column(0)])
        r = c.expect('result')
        assert r.status == 0 and r.true_residual <= 1e-10
        c.ack(again.request)
        s = d.status_when(lambda s: s.counters.requests == 0)
        assert s.engine.restarts == 1 and s.memory_used == 0 and s.state == qk.STATE_READY
        assert d.terminate() == 0


@tap.test
def cancel_stops_a_running_solve(case):
    with case.daemon('--slots', '2', gauge=LONG) as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_Z4, tol=1e-100, max_iter=10 ** 8, column=[noise_column(1)])
        while c.expect('progress', skip=()).running[0].iterations == 0:
            pass
        c.send(cancel=qk.Cancel(request=1))
        r = c.expect('result')
        assert r.status == STATUS['CANCELLED'] and r.bytes == 0


@tap.test
def a_thousand_solves_leave_memory_where_it_was(case):
    if case.ranks != '1':
        raise tap.Skip('once is enough')
    with case.daemon('--slots', '16', gauge='builtin:weak:4x4x4x4:1', mass='1') as d, Client(d) as c:
        after = []
        for i in range(5):
            accepted = c.submit(200, source=qk.SOURCE_Z4, sink=qk.SINK_NONE, tol=1e-3,
                                column=[noise_column(200 * i + k) for k in range(200)])
            assert all(r.status == 0 for r in c.results(200))
            c.ack(accepted.request)
            s = d.status_when(lambda s: s.counters.requests == 0)
            after.append((s.engine.device_bytes, s.engine.host_bytes, s.memory_used, resident(s.pid), resident(s.engine.pid)))
        first, last = after[1], after[-1]
        assert s.counters.converged == 1000 and first[:3] == last[:3] and s.memory_used == 0, after
        assert last[3] - first[3] < 1 << 20 and last[4] - first[4] < 4 << 20, after


def resident(pid):
    with open('/proc/%d/statm' % pid, encoding='utf-8') as f:
        return int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


@tap.test
def a_bad_gauge_file_is_refused_with_65(case):
    with tempfile.NamedTemporaryFile(suffix='.lime') as f:
        f.write(b'this is no gauge file' * 100)
        f.flush()
        for gauge in (f.name, '/nonexistent.lime'):
            with case.daemon(gauge=gauge, wait=None) as d:
                assert d.wait() == 65, d.lines
                assert any('setup refused' in line for line in d.lines)


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:]))
