#!/usr/bin/env python3
"""quarkd with multigrid near the critical mass: test_multigrid.py QUARKD QUARK_ENGINE QUARK_GAUGE [RANKS]

The lattice is the thermalised one that QK_THERMAL names; solutions are judged by the numpy oracle.
"""
import os
import signal
import sys
import tempfile

import tap

try:
    import engine_driver
    import front_driver
    import numpy as np
    import ref_dirac as ref
    from engine_driver import Engine, pb
    from front_driver import STATUS, Client, Daemon, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))
if not os.path.exists(os.environ.get('QK_THERMAL', '')):
    tap.skip_all('QK_THERMAL names no lattice')

engine_driver.TIMEOUT = front_driver.TIMEOUT = 240.0  # a setup on a busy machine
KAPPA, CSW = 0.1350, 1.769
MASS = 1 / (2 * KAPPA) - 4
DIMS = (8, 8, 8, 16)
FEW = ('--mg-vectors', '16', '--mg-setup-passes', 'none')  # for what needs no good setup
# Takes the high modes of the first digit in few iterations, and many for the low ones of later digits.
POOR = ('--mg-vectors', '2', '--mg-setup-iterations', '1', '--mg-setup-passes', 'none', '--mg-iterations', '1', '--mg-smoother', 'mr',
        '--mg-post', '2')


class Case:
    def __init__(self, quarkd, engine, quark_gauge, ranks='1'):
        self.binary, self.engine, self.ranks = quarkd, engine, ranks
        self.gauge = os.environ['QK_THERMAL']
        self.folder = tempfile.TemporaryDirectory()
        links, _ = ref.load_any(self.gauge)
        self.op = ref.WilsonClover(links, MASS, CSW, (1, 1, 1, -1))

    def daemon(self, *options, ranks=None, wait='ready: ', gauge=None, checkpoint='off'):
        path = checkpoint if checkpoint == 'off' else os.path.join(self.folder.name, checkpoint)
        return Daemon(self.binary, '--csw', str(CSW), '--ranks', ranks or self.ranks, '--solver', 'mg', '--mg-checkpoint', path,
                      '--lease', '600', *options, engine=self.engine, gauge=gauge or self.gauge, mass=repr(MASS), wait=wait)

    def residual(self, x, b):
        x, b = x.reshape(self.op.shape), b.reshape(self.op.shape)
        return np.linalg.norm(b - self.op.apply(x)) / np.linalg.norm(b)

    def noise(self, seed):
        n = int(np.prod(self.op.shape))
        return np.random.default_rng(seed).standard_normal(2 * n).view(complex)


def noise_columns(n, first=0):
    return [qk.Column(seed=first + k, t=-1, spin=-1, colour=-1) for k in range(n)]


@tap.test
def solutions_are_those_of_the_plain_solver(case):
    fields = [case.noise(s) for s in range(3)]
    with case.daemon('--slots', '3') as d, Client(d) as c:
        quick = c.solve(fields, tol=1e-12)
        s = d.status_when(lambda s: abs(s.engine.memory.serving * int(case.ranks) / s.engine.device_bytes - 1) < 0.1)
        mg = s.setup.multigrid
        assert s.setup.solver == 'mg' and len(mg.level) >= 2 and list(mg.level[0].dims) == list(DIMS)
        assert mg.level[0].vectors == 24 and mg.level[0].orthonormality < 1e-5 and mg.level[0].galerkin < 1e-3
        assert 0 < mg.convergence < 0.6 and mg.bytes > 0 and not mg.restored and mg.seconds > 0
        assert s.engine.memory.serving == sum(share.bytes for share in s.engine.memory.share)
        assert list(mg.level[0].block) == [4, 4, 4, 4], mg.level[0]  # on any number of ranks that carry them
        if case.ranks == '2':
            assert list(s.engine.grid) == [1, 1, 1, 2] and s.engine.grid_why == 'least surface, aggregates of the whole lattice', s.engine
        else:
            assert not s.engine.HasField('grid_why')
        assert d.terminate() == 0
    with case.daemon('--solver', 'bicgstab', '--slots', '3') as d, Client(d) as c:
        slow = c.solve(fields, tol=1e-12)
        assert not d.status().setup.HasField('multigrid')
    for (r, x), (p, y), b in zip(quick, slow, fields):
        assert r.status == p.status == 0 and case.residual(x, b) < 1.01e-12
        assert np.linalg.norm(x - y) < 1e-9 * np.linalg.norm(y)
        assert r.iterations <= 30 < p.iterations and r.applications < p.applications, (r, p)


@tap.test
def a_killed_engine_comes_back_from_the_checkpoint_and_finishes(case):
    n = 12
    with case.daemon(*FEW, '--slots', '4', checkpoint='kill') as d, Client(d) as c:
        d.status_when(lambda s: s.setup.multigrid.checkpoint_written)
        c.submit(n, source=qk.SOURCE_Z4, sink=qk.SINK_NONE, tol=1e-9, column=noise_columns(n))
        first = [c.expect('result') for _ in range(4)]
        s = d.status_when(lambda s: s.counters.running > 0)
        os.kill(s.engine.pid, signal.SIGKILL)
        again = [c.expect('result') for _ in range(n - 4)]
        assert all(r.status == 0 and r.true_residual <= 1e-9 for r in first + again), again
        c.ack(1)
        s = d.status()
        assert s.engine.restarts == 1 and s.setup.multigrid.restored and s.setup.multigrid.checkpoint_written
        assert max(r.iterations for r in again) <= 1.2 * max(r.iterations for r in first) + 1
        assert d.terminate() == 0


@tap.test
def the_checkpoint_serves_other_ranks_and_no_other_mass(case):
    other = '1'
    with case.daemon(*FEW, checkpoint='grid') as d:
        s = d.status_when(lambda s: s.setup.multigrid.checkpoint_written)
        assert d.terminate() == 0
    with case.daemon(*FEW, ranks=other, checkpoint='grid') as d, Client(d) as c:
        s = d.status()
        assert s.setup.multigrid.restored and s.engine.ranks == int(other), s.setup.multigrid
        b = case.noise(5)
        (r, x), = c.solve([b], tol=1e-10)
        assert r.status == 0 and case.residual(x, b) < 1.01e-10
    with case.daemon(*FEW, '--mass', '-0.25', checkpoint='grid') as d:
        s = d.status_when(lambda s: s.setup.multigrid.checkpoint_written)
        assert not s.setup.multigrid.restored and d.log('checkpoint .* not used: ')


def load_from(d, c, name, source, mass):
    """The setup as it was loaded, from the null vectors of another one."""
    c.send(load=qk.Load(name=name, mass=mass, csw=CSW, evolve_from=source))
    c.expect('setup')
    d.status_when(lambda s: [m.state for m in s.setups if m.name == name] == [qk.STATE_READY])
    return d.status(setup=name).setup


@tap.test
def another_mass_starts_from_null_vectors_that_are_there(case):
    mass = MASS + 0.01
    op = ref.WilsonClover(ref.load_any(case.gauge)[0], mass, CSW, (1, 1, 1, -1))
    path = os.path.join(case.folder.name, 'evolve')
    with case.daemon(*FEW, '--slots', '2', checkpoint='evolve') as d, Client(d) as c:
        mg = load_from(d, c, 'heavy', 'main', mass).multigrid
        source = 'evolved from main (wilson-clover;mass='
        assert mg.origin.startswith(source) and mg.origin.endswith('vectors kept') and not mg.origin_trouble, mg
        assert not mg.restored and mg.convergence < 0.6
        b = case.noise(7)
        (r, x), = c.solve([b], tol=1e-10, setup='heavy')
        x = x.reshape(op.shape)
        assert r.status == 0 and np.linalg.norm(b.reshape(op.shape) - op.apply(x)) < 1.01e-10 * np.linalg.norm(b)
        state = [s for s in d.status().setups if s.name == 'heavy'][0]
        assert state.origin == mg.origin and not [s for s in d.status().setups if s.name == 'main'][0].HasField('origin')
        d.status_when(lambda s: d.status(setup='heavy').setup.multigrid.checkpoint_written)
        os.kill(d.status(setup='heavy').engine.pid, signal.SIGKILL)  # comes back by itself, not from its source
        d.status_when(lambda s: d.status(setup='heavy').setup.multigrid.restored)
        assert d.status(setup='heavy').setup.multigrid.origin == mg.origin
        with open(path, 'r+b') as f:  # a vector of its source is damaged
            f.seek(20000)
            byte = f.read(1)
            f.seek(20000)
            f.write(bytes([byte[0] ^ 64]))
        mg = load_from(d, c, 'heavier', 'main', mass + 0.01).multigrid
        assert not mg.HasField('origin') and 'null vectors of main not used: ' in mg.origin_trouble and 'checksum' in mg.origin_trouble, mg
        assert mg.convergence < 0.6 and d.log('null vectors of main not used: ')
        assert d.terminate() == 0


@tap.test
def slow_solves_are_refreshed(case):
    with case.daemon(*POOR, '--slots', '8') as d, Client(d) as c:
        noise = dict(source=qk.SOURCE_Z4, sink=qk.SINK_NONE)
        c.submit(8, tol=0.3, column=noise_columns(8), **noise)
        assert all(r.status == 0 for r in c.results(8))
        c.ack(1)
        c.submit(16, tol=1e-5, column=noise_columns(16), **noise)
        assert all(r.status == 0 for r in c.results(16))
        c.ack(2)
        s = d.status_when(lambda s: s.setup.multigrid.refined + s.setup.multigrid.rebuilt > 0)
        assert s.engine.restarts == 0 and d.log('outer iterations a digit, .* to be refined')
        assert d.terminate() == 0


@tap.test
def fills_wait_while_multigrid_is_due_for_a_refresh(case):
    if case.ranks != '1':
        raise tap.Skip('once is enough')
    words = [qk.Setting(key=POOR[i][2:], value=POOR[i + 1]) for i in range(0, len(POOR), 2)]
    with Engine(case.engine) as e:
        e.load(case.gauge, mass=MASS, csw=CSW, slots=8, solver='mg', multigrid=words)
        e.ready()
        reports = []

        def fill(slot, tol, max_iter=5000):
            column = qk.Column(seed=slot, t=-1, spin=-1, colour=-1)
            return e.fill(slot, tol=tol, max_iter=max_iter, source=qk.SOURCE_Z4, column=column)

        def ends(count):
            found = {}
            while len(found) < count:
                name, body = e.receive()
                reports.extend([body.multigrid] if name == 'multigrid' else [])
                if name == 'fill_done':
                    found[body.serial] = body.status
            return found

        first = [fill(k, 0.3) for k in range(8)]
        assert ends(8) == {t: 0 for t in first}
        endless = fill(7, 1e-100, 10**9)
        hard = [fill(k, 1e-5) for k in range(7)]
        assert ends(7) == {t: 0 for t in hard}
        eighth = fill(0, 1e-5)  # the mean over eight asks for a refresh when this one has ended
        assert ends(1) == {eighth: 0}
        cancelled, waiting = fill(0, 1e-5), fill(1, 1e-5)
        e.send(cancel=pb.CancelFill(entry=0, serial=cancelled))
        assert ends(1) == {cancelled: STATUS['CANCELLED']} and not any(r.refined for r in reports)
        again = fill(0, 1e-5)
        e.send(cancel=pb.CancelFill(entry=7, serial=endless))
        assert ends(3) == {endless: STATUS['CANCELLED'], waiting: 0, again: 0}
        assert reports[-1].refined == 1 and reports[-1].rebuilt == 0, reports[-1]
        assert e.stop() == 0


@tap.test
def wrong_settings_end_the_daemon_with_the_reason(case):
    if case.ranks != '1':
        raise tap.Skip('once is enough')
    cases = [(('--mg-vectors', '23'), 65, 'nvec|vectors'), (('--mg-vectors', 'many'), 78, 'mg-vectors = many'),
             (('--mg-levels', '6'), 78, 'mg-levels = 6'), (('--mg-blocks', '3x4x4x4'), 65, '3'),
             (('--mg-smoother', 'sor'), 78, 'mg-smoother = sor'), (('--precision', 'double'), 78, 'precision = double'),
             (('--mg-iterations', '1001'), 78, 'mg-iterations = 1001')]
    for options, code, words in cases:
        with case.daemon(*options, wait=None) as d:
            assert d.log('setup rejected: .*' + words) and d.wait() == code, (options, d.lines)


@tap.test
def a_lattice_without_aggregates_falls_back(case):
    if case.ranks != '1':
        raise tap.Skip('once is enough')
    with case.daemon('--solver', 'auto', gauge='builtin:weak:4x4x4x6:1', ranks='1') as d, Client(d) as c:
        s = d.status()
        if s.setup.solver == 'bicgstab':
            assert d.log('bicgstab instead of multigrid: ')
        c.submit(2, source=qk.SOURCE_Z4, sink=qk.SINK_NONE, column=noise_columns(2))
        assert all(r.status == 0 for r in c.results(2))
    with case.daemon('--solver', 'auto', gauge='builtin:weak:2x2x2x4:1', ranks='1') as d:
        assert d.status().setup.solver == 'bicgstab' and d.log('bicgstab instead of multigrid: ')


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:]))
