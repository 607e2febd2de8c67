"""An engine that only pretends, for the front's tests: `fake_engine.py --front ENDPOINT`.

It speaks engine.proto and does with each right-hand side what its max_iter says (SOLVE, HOLD, ... below); anything else
is "solved" at once: x = 2 b for uploads, x = (gamma + 1) times the kept solution for sequential sources, zeros but for the
seed in the first number, alpha of a smearing in the second, and the flavour of the column in the fifth, for generated ones. The gamma matrix at the source of a
contraction's first channel is its action in the same way; its numbers are `correlators`.
With csw, x = (2 + csw) b. That of a work is 1 + its number times as much, with dagger i times; 3^schur times; (1 + parity / 2) times. A kept
solution of another parity is cut, or repeated. A gauge of the form builtin:fake:WORD... does what its words say: refuse=STATUS, needs=FILE, wait=FIFO (until it is
written to), digest=NUMBER, die (while loading). FAKE_ROOM is a folder in which no more than FAKE_ENGINES engines find room: others are refused for want of memory.
FAKE_LOAD in the environment says what LOAD meets: ok, refuse (LOAD_FAILED), mute (no answer), save (a checkpoint that takes its time), or a
digest by generation (change). FAKE_BEFORE is the number of engines that fronts before this one have had. FAKE_GO names a fifo: a refusal, the checkpoint, or a solve
with WHEN_TOLD waits until it is written to.
Eigenvectors: the space of an EIGEN is its action less its count (HOLD; DIE at restart 2, HOLD_ONCE: so does the first engine; WHEN_TOLD: HOLD by the first engine; ODD_STATUS; FATAL: refused; STALE_SERIAL), else eigenvalue i is
(i + 1) / 8 with a residual of 1e-9; what is projected onto them is `projection`; a file, if there is one, keeps the problem, and lets it go on from the restart that it notes. A source that is an eigenvector has its number, t, spin and slice
in numbers 9 to 12; but of vectors that a client sent, whose action is their tolerance in units of 1e-4 and whose values are 0, it is what was sent.
FAKE_WISH is a kind of REFRESH that the first replica with multigrid asks for once; a REFRESH is carried out when nothing is held, and told on stderr.
FAKE_BULK is how many bytes its plan of memory has. FAKE_ADOPT says that it outlives its front, for 60 s, and what ADOPT meets: yes, mute (no answer),
version (HELLO of another one), die, fatal (FATAL in place of HELLO), or stale (it has another LOAD than its front thinks). FAKE_SAYS is written to stderr at the start.
QK_PROTO_PY in the environment is the folder of the generated modules.
"""
import ctypes
import errno
import os
import signal
import sys
import threading
import time

import numpy as np
import zmq

sys.path.insert(0, os.environ['QK_PROTO_PY'])
import engine_pb2 as pb  # noqa: E402
import quark_pb2 as qk   # noqa: E402

SOLVE, HOLD, DIE, STALL, OVERSTATE, STALE_SERIAL, GARBAGE, NO_SUCH_SLOT, FATAL, ODD_STATUS, PROGRESS, DEAF, \
    HOLD_ONCE, GORGE, NO_ROOM, WHEN_TOLD, BOAST, BAD_HQ, NO_HQ, WALL, BAD_WALL, HOLD_TWICE = range(1, 23)
NUMBERS = {qk.CHANNEL_MESON: 1, qk.CHANNEL_NUCLEON: 16, qk.CHANNEL_DELTA: 144, qk.CHANNEL_CORNER: 1}
REAL = {qk.DTYPE_F32: np.dtype('<c8'), qk.DTYPE_F64: np.dtype('<c16')}


def correlators(contraction, a, b, t_extent):
    """0, 1, 2, ... plus 1000 times the sum of the columns' first numbers, those of b times 100."""
    count = sum(NUMBERS[c.kind] for c in contraction.channel) * max(1, len(contraction.momentum) // 3) * t_extent
    return np.arange(count) + 1000 * (sum(x[0] for x in a) + 100 * sum(x[0] for x in b)) + 0j


def projection(x, fill, t_extent):
    """0, 1, 2, ... times i plus the seed and, of a source that is an eigenvector, 1000 times its number, 100 times t, 10 times the spin."""
    count = t_extent * 4 * fill.project_count
    vector = np.dot(x[9:12], [1000, 100, 10]) if fill.source == qk.SOURCE_VECTOR else 0
    return (x[0] + vector + 1j * np.arange(count)).astype(x.dtype)


def wall_sums(seed, times):
    """What a result of domain wall fermions has."""
    t = np.arange(times)
    return qk.WallSums(quark=seed + 1 + t, midpoint=(seed + 1 + t) / 8, axial=-0.5 * t)


def bad_wall_sums(seed):
    """One that is not as it should be."""
    return (qk.WallSums(), qk.WallSums(midpoint=[1.0]), qk.WallSums(quark=[1.0, float('nan')]), qk.WallSums(quark=[1.0, 2.0], midpoint=[1.0]),
            qk.WallSums(quark=[1.0], axial=[float('inf')]), qk.WallSums(quark=[1.0] * 513), qk.WallSums(quark=[1.0], axial=[1.0, 2.0]))[seed]


def lives(pid):
    """A zombie does not."""
    try:
        with open('/proc/%s/stat' % pid, encoding='utf-8') as f:
            return f.read().rsplit(')', 1)[1].split()[0] != 'Z'
    except OSError:
        return False


class FakeEngine:
    def __init__(self, endpoint):
        self.generation = int(endpoint.rsplit('-', 1)[1]) + int(os.environ.get('FAKE_BEFORE', '0'))
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.setsockopt(zmq.RECONNECT_IVL, 10)  # the next front is soon found
        self.socket.connect(endpoint)
        self.held = {}
        self.contract_held = self.eigen_held = self.loaded = self.to_refresh = None
        self.kept, self.given = {}, {}
        self.heard = time.monotonic()

    def send(self, **body):
        self.socket.send(pb.EngineMessage(**body).SerializeToString())

    def load(self, load):
        how = os.environ.get('FAKE_LOAD', 'ok')
        if how == 'mute':
            threading.Event().wait()
        assert not self.held and not self.contract_held and not self.eigen_held  # in place: nothing is in flight
        self.kept, self.given = {}, {}
        self.loaded = None
        words = dict((w + '=').split('=')[:2] for w in load.gauge.split(':'))
        self.csw = float({p.key: p.value for p in load.parameter}.get('csw', 0))
        self.ls = int({p.key: p.value for p in load.parameter}.get('Ls', 1))
        self.send(load_progress=pb.LoadProgress(phase='read', done=1, total=2))
        if 'wait' in words:
            with open(words['wait'], encoding='utf-8'):
                pass
        if 'die' in words:
            os.kill(os.getpid(), signal.SIGKILL)
        if not os.path.exists(words.get('needs', '/')):
            self.send(load_failed=pb.LoadFailed(status=113, text=words['needs'] + ': no such file'))
            return
        if 'refuse' in words or not self.finds_room():
            self.send(load_failed=pb.LoadFailed(status=int(words.get('refuse', 300)), text='as %s wants' % load.gauge))
            return
        if how == 'refuse':
            with open(os.environ.get('FAKE_GO', os.devnull), encoding='utf-8'):
                pass
            self.send(load_failed=pb.LoadFailed(status=104, text='checksum of a fake file'))
            return
        self.dims = list(load.dims) or [4, 4, 4, 4]
        self.site_reals = int(words.get('site_reals', 24))
        more = {}
        if 'sign' in words:
            more['sign'] = qk.SignReport(vectors=20, lowest=0.125, bound=0.25, fractions=False, order=200, square=2e-11, ginsparg_wilson=1e-11)
        if load.solver == 'mg':
            words = {m.key: m.value for m in load.multigrid}
            levels = [qk.MultigridLevel(dims=self.dims, block=[2, 2, 2, 2], vectors=int(words.get('mg-vectors', 24)), seconds=0.5,
                                        smoother='mr', pre=4, post=4, galerkin=1e-6), qk.MultigridLevel(dims=[2, 2, 2, 2], seconds=0)]
            report = qk.MultigridReport(level=levels, seconds=0.75, restored=False, attempts=1, bytes=1 << 20, refined=0, rebuilt=0,
                                        checkpoint=load.checkpoint or None, checkpoint_writing=how == 'save')
            if load.HasField('evolve_from'):  # the path shows what the front has found
                report.origin = 'evolved from %s at %s' % (load.evolve_from, load.evolve_path or 'nowhere')
            more = dict(more, multigrid=report, memory=qk.MemoryReport(share=[qk.MemoryShare(name='solver', bytes=5)], serving=5, setup=7,
                                                                 free=9))
        if load.deflate_from:
            if not os.path.exists(load.deflate_file):
                self.send(load_failed=pb.LoadFailed(status=109, text=load.deflate_file + ': there is no such file'))
                return
            with open(load.deflate_file, 'rb') as f:
                count = qk.EigenProblem.FromString(f.read()[1:]).count
            more['deflation'] = qk.DeflationReport(vectors=load.deflate or count, lowest=0.125, highest=0.5, seconds=0.25, bytes=1 << 20, restored=True,
                                                   origin=load.deflate_from, trouble=load.deflate_file)
        elif load.deflate:  # the path shows what the front has found
            more['deflation'] = qk.DeflationReport(vectors=load.deflate, lowest=0.125, highest=0.5, seconds=1.5, bytes=1 << 20, restored=False,
                                                   trouble=load.deflate_file)
        for key in 'site_reals', 'columns':
            if key in words:
                more[key] = int(words[key])
        if 'FAKE_BULK' in os.environ:  # a report that leaves little room
            share = qk.MemoryShare(name='m' * int(os.environ['FAKE_BULK']), bytes=1)
            more['memory'] = qk.MemoryReport(share=[share], serving=5, setup=7, free=9)
        self.loaded = dict(ready=pb.Ready(
            backend='cpu', device='fake', ranks=1, grid=[1, 1, 1, 1], dims=self.dims, format='fake', plaquette=0.5, unitarity=0,
            slots=load.slots or 16, inflight=int(os.environ.get('FAKE_INFLIGHT', load.slots or 16)), solver='bicgstab' if load.solver == 'auto' else load.solver, link_reals=load.link_reals or 12,
            digest=self.generation if how == 'change' else int(words.get('digest', 7)), device_bytes=1, host_bytes=2, seconds=0.1,
            fingerprint=load.fingerprint,
            clock=[qk.StartClock(phase='read\n', seconds=0.0625), qk.StartClock(phase='file', seconds=0.03125, beside=True)],
            **more))
        self.send(**self.loaded)
        if 'multigrid' in more:
            if how == 'save':
                with open(os.environ['FAKE_GO'], encoding='utf-8'):
                    pass
            report.checkpoint_writing = False
            report.refined = 1
            report.checkpoint_written = load.write or load.replicas < 2
            self.report, self.refreshed = report, 0
            self.send(multigrid=pb.MultigridNews(multigrid=report))
            if 'FAKE_WISH' in os.environ and load.replica == 0 and self.generation == 1:
                self.send(multigrid=pb.MultigridNews(multigrid=report, wish=int(os.environ['FAKE_WISH'])))

    def finds_room(self):
        folder = os.environ.get('FAKE_ROOM')
        if not folder:
            return True
        inside = [p for p in os.listdir(folder) if lives(p)]
        if len(inside) >= int(os.environ['FAKE_ENGINES']):
            return False
        open(os.path.join(folder, str(os.getpid())), 'w', encoding='utf-8').close()
        return True

    def done(self, fill, status=0, residual=None, written=True, serial=None, entry=None, text=None, count=(3, 6)):
        self.send(fill_done=pb.FillDone(
            entry=fill.entry if entry is None else entry, serial=fill.serial if serial is None else serial, status=status,
            true_residual=residual if residual is not None else 0 if fill.work else min(t for t in (fill.tol, fill.tol_abs, 1) if t > 0) / 2,
            iterations=count[0], applications=count[1], seconds=0.01, written=written, text=text,
            norm_b=10 + fill.slab_count if fill.HasField('slab_count') else 1, norm_x=fill.slab_first if fill.HasField('slab_count') else 2,
            **(dict(wall=wall_sums(fill.column.seed, self.dims[3])) if fill.max_iter == WALL else
               dict(wall=bad_wall_sums(fill.column.seed)) if fill.max_iter == BAD_WALL else {}),
            **({} if fill.tol_hq == 0 or fill.max_iter == NO_HQ else {'hq_residual': fill.tol_hq * (2 if fill.max_iter == BAD_HQ else 0.5)})))

    def upload(self, fill):
        """The source; of a slab no other bytes are looked at, and the norms of RESULT tell which it was: |b| its slices and 10, |x| the first."""
        data = np.memmap('/dev/shm' + fill.shm_in, REAL[fill.dtype], 'r')
        if not fill.HasField('slab_count'):
            return np.array(data)
        out = np.zeros_like(data)
        slices = (2 if self.site_reals == 48 else 1, self.dims[3], -1)
        within = np.s_[:, fill.slab_first:fill.slab_first + fill.slab_count]
        out.reshape(slices)[within] = data.reshape(slices)[within]
        return out

    def solve(self, fill):
        count = int(np.prod(self.dims)) * self.site_reals // (4 if fill.parity else 2)
        if fill.five_d:
            assert not fill.HasField('slab_count')
            count *= self.ls
        if fill.source == qk.SOURCE_SEQUENTIAL:
            x = (fill.column.gamma + 1) * np.fromfile('/dev/shm' + fill.shm_in, REAL[fill.in_dtype]).astype(REAL[fill.dtype])
            assert len(x) == int(np.prod(self.dims)) * self.site_reals // (4 if fill.in_parity else 2)
            x = np.resize(x, count)
        elif fill.HasField('shm_in'):
            x = (2 + self.csw) * self.upload(fill)
        else:
            x = np.zeros(count, REAL[fill.dtype])
            x[0] = fill.column.seed
            x[1] = fill.smear.alpha if fill.HasField('smear') else 0
            x[2] = fill.backlog
            x[3] = fill.order
            x[4] = fill.column.flavour
            x[5:9] = fill.tol, fill.tol_abs, fill.tol_hq, fill.single_rhs
            if fill.source == qk.SOURCE_VECTOR:
                assert fill.vectors in self.kept, (fill.vectors, self.kept)
                x[9:13] = fill.column.vector, fill.column.t, fill.column.spin, fill.column.slice
                if fill.vectors in self.given:
                    v = self.given[fill.vectors]
                    x[...] = 0
                    at = np.s_[:] if fill.column.t < 0 else fill.column.t
                    x.reshape(*self.dims[::-1], 4, 3)[at, ..., fill.column.spin, :] = v[:, fill.column.vector][at]
        assert len(x) == count and fill.flavour in (-1, 1)
        if fill.flavour < 0:
            x = -x
        x = (1 + fill.work) * (1j if fill.dagger else 1) * 3 ** fill.schur * (1 + 0.5 * fill.parity) * x
        if fill.HasField('project'):
            assert fill.project in self.kept and not fill.parity, (fill.project, self.kept)
            x = projection(x, fill, self.dims[3])
        if fill.HasField('shm_out'):
            assert os.path.getsize('/dev/shm' + fill.shm_out) == x.nbytes
            out = x if fill.factor == 1 else (fill.factor * x).astype(x.dtype)
            with open('/dev/shm' + fill.shm_out, 'r+b') as f:
                f.write(out.view(np.uint8))

    def solve_or_say(self, fill):
        """Whether there was room for the solution."""
        try:
            if fill.max_iter == NO_ROOM:
                raise OSError(errno.ENOSPC, 'as the test wants')
            self.solve(fill)
        except OSError as e:
            if e.errno != errno.ENOSPC:
                raise
            self.done(fill, status=400, written=False, text='/dev/shm is full: give it more room, or lower --max-memory')
            return False
        return True

    def fill(self, fill):
        action = fill.max_iter
        if action in (HOLD, DEAF) or (action == HOLD_ONCE and self.generation == 1) or (action == HOLD_TWICE and self.generation <= 2):
            self.held[fill.entry] = fill
        elif action == DIE:
            print('2026-01-02T03:04:05.678Z error quark assert: x.c:7: assertion failed', file=sys.stderr)
            print('2026-01-02T03:04:05.679Z info quark worker: goes on\n-----', file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        elif action == GORGE:  # takes memory until there is none
            taken = []
            while True:
                taken.append(np.ones(1 << 20))
        elif action == STALL:
            threading.Event().wait()
        elif action == WHEN_TOLD:
            with open(os.environ['FAKE_GO'], encoding='utf-8'):
                pass
            self.solve(fill)
            self.done(fill)
        elif action == OVERSTATE:
            self.solve(fill)
            self.done(fill, residual=0.5)
        elif action == BOAST:
            self.solve(fill)
            self.done(fill, count=(2 ** 64 - 1, 2 ** 64 - 1))
        elif action == STALE_SERIAL:
            self.done(fill, status=203, serial=fill.serial + 1000, written=False)
            self.solve(fill)
            self.done(fill)
        elif action == GARBAGE:
            self.socket.send(b'\xff' * 100)
        elif action == NO_SUCH_SLOT:
            self.done(fill, entry=63)
        elif action == FATAL:
            self.send(fatal=pb.Fatal(status=301, text='the fake device has fallen off'))
            threading.Event().wait()
        elif action == ODD_STATUS:
            self.done(fill, status=9999, written=False)
        else:
            if action == PROGRESS:
                for i in range(50):
                    self.send(fill_progress=pb.FillProgress(entry=fill.entry, serial=fill.serial, iterations=i, residual=1 / (i + 1)))
                self.held[fill.entry] = fill
                return
            if self.solve_or_say(fill):
                self.done(fill)

    def refresh(self):
        if self.held or not self.to_refresh:
            return
        m, self.to_refresh = self.to_refresh, None
        print('fake engine: refresh %d of kind %d%s' % (m.number, m.kind, ', writes' if m.write else ''), file=sys.stderr, flush=True)
        self.report.refined += m.kind == 1
        self.report.rebuilt += m.kind == 2
        self.report.checkpoint_written = m.kind == 3 or m.write
        self.send(multigrid=pb.MultigridNews(multigrid=self.report, refresh=m.number))
        self.loaded['ready'].refresh = m.number

    def cancel(self, cancel):
        fill = self.held.get(cancel.entry)
        if fill and fill.serial == cancel.serial and fill.max_iter != DEAF:
            del self.held[cancel.entry]
            self.done(fill, status=203, residual=1, written=False)
            self.refresh()
        if self.contract_held:
            held, self.contract_held = self.contract_held, None
            self.contracted(held)

    def contracted(self, contract, status=0, serial=None):
        c = contract.contraction
        a = [np.fromfile('/dev/shm' + name, REAL[contract.dtype_a]) for name in contract.shm_a]
        b = [np.fromfile('/dev/shm' + name, REAL[contract.dtype_b]) for name in contract.shm_b]
        n = 3 if self.site_reals == 6 else 12
        assert len(a) == n and len(b) in (0, n) and all(len(x) == int(np.prod(self.dims)) * self.site_reals // 2 for x in a + b)
        out = correlators(c, a, b, self.dims[3])
        assert os.path.getsize('/dev/shm' + contract.shm_out) == out.nbytes
        np.memmap('/dev/shm' + contract.shm_out, out.dtype, 'r+')[...] = out
        self.send(contracted=pb.Contracted(serial=contract.serial if serial is None else serial, status=status,
                                           text='as the test wants' if status else None, seconds=0.02))

    def contract(self, contract):
        action = contract.contraction.channel[0].source
        if action == HOLD or (action == HOLD_ONCE and self.generation == 1):  # until the next CANCEL of a slot
            self.contract_held = contract
        elif action == DIE:
            os.kill(os.getpid(), signal.SIGKILL)
        elif action == STALE_SERIAL:
            self.contracted(contract, status=401, serial=contract.serial + 1000)
            self.contracted(contract)
        elif action == FATAL:
            self.contracted(contract, status=302)
        elif action == ODD_STATUS:
            self.contracted(contract, status=9999)
        else:
            self.contracted(contract)

    def eigen_done(self, eigen, status=0, text=None, serial=None):
        p, figures = eigen.problem, {}
        if not status:
            values = (1 + np.arange(p.count * (self.dims[3] if p.kind == qk.EIGEN_LAPLACIAN else 1))) / 8 * (not p.HasField('field'))
            if eigen.HasField('shm_out'):
                out = np.stack([values, np.full(len(values), 1e-9)], axis=1)
                assert os.path.getsize('/dev/shm' + eigen.shm_out) == out.nbytes
                np.memmap('/dev/shm' + eigen.shm_out, out.dtype, 'r+')[...] = out.ravel()
            figures = dict(lowest=values[0], highest=values[-1], residual=1e-9, restarts=3, applications=100, device_bytes=1 << 20, host_bytes=1 << 21)
            self.kept[p.name] = p.SerializeToString()
        self.send(eigen_done=pb.EigenDone(serial=eigen.serial if serial is None else serial, status=status, text=text, seconds=0.5, **figures))

    def eigen_restart(self, eigen, n):
        """The state at a restart is in the file."""
        if eigen.file:
            with open(eigen.file, 'wb') as f:
                f.write(bytes([n]) + eigen.problem.SerializeToString())
        self.send(eigen_progress=pb.EigenProgress(serial=eigen.serial, restart=n, converged=n, seconds=n / 4))

    def eigen_from(self, eigen):
        """The restart that the file notes; -1: there is none, or of another problem."""
        if not eigen.file or not os.path.exists(eigen.file):
            return -1
        with open(eigen.file, 'rb') as f:
            data = f.read()
        return data[0] if data[1:] == eigen.problem.SerializeToString() else -1

    def take(self, eigen):
        """Vectors of a client: from where it says."""
        p = eigen.problem
        assert p.field.startswith('digest:') and p.kind == qk.EIGEN_LAPLACIAN, p
        memory, name, form = eigen.memory.split(':')
        v = np.fromfile('/dev/shm' + name, {'f32': '<c8', 'f64': '<c16'}[form])
        assert memory == 'memory' and len(v) == 3 * p.count * int(np.prod(self.dims)), eigen.memory
        self.given[p.name] = v.reshape(self.dims[3], p.count, *self.dims[2::-1], 3)

    def eigen(self, eigen):
        assert not self.eigen_held
        p, begin = eigen.problem, self.eigen_from(eigen)
        action = round(p.tol * 1e4) if p.HasField('field') else p.space - p.count
        if p.HasField('field') and not eigen.restore:
            self.take(eigen)
        print('fake engine: eigen %s%s from %d' % (p.name, ' again' if eigen.restore else '', begin), file=sys.stderr, flush=True)
        if eigen.restore:
            there = begin == 255 or self.kept.get(p.name) == p.SerializeToString()
            self.eigen_done(eigen, 0 if there else 113, None if there else 'they are in no file')
            return
        for n in range(max(0, begin), 3):
            self.eigen_restart(eigen, n)
            if n == 2 and (action == DIE or (action == HOLD_ONCE and self.generation == 1)):
                os.kill(os.getpid(), signal.SIGKILL)
        if action == HOLD or (action == WHEN_TOLD and self.generation == 1):
            self.eigen_held = eigen
        elif action == ODD_STATUS:
            self.eigen_done(eigen, 9999)
        elif action == FATAL:
            self.eigen_done(eigen, 300, 'no room for these vectors')
        else:
            if action == STALE_SERIAL:
                self.eigen_done(eigen, 401, serial=eigen.serial + 1000)
            self.eigen_restart(eigen, 255)
            self.eigen_done(eigen)

    def eigen_cancel(self, cancel):
        held = self.eigen_held
        if held and held.serial == cancel.serial:
            self.eigen_held = None
            if held.file:
                os.unlink(held.file)
            self.eigen_done(held, 203)

    def adopt(self, adopt):
        """What the front before was told last comes first, and must not count."""
        how = os.environ['FAKE_ADOPT']
        print('fake engine: adopted', file=sys.stderr, flush=True)
        for fill in self.held.values():
            self.done(fill)
        if self.loaded:
            self.send(**self.loaded)
        self.send(hello=pb.EngineHello(version=1, pid=os.getpid(), ranks=1, nonce=adopt.nonce + 1))
        self.held, self.contract_held, self.eigen_held = {}, None, None
        self.generation += 1
        if how == 'stale' and self.loaded:
            self.loaded['ready'].fingerprint += 1
        if how == 'die':
            self.fill(pb.Fill(max_iter=DIE))
        if how == 'mute':
            threading.Event().wait()
        if how == 'fatal':
            self.send(fatal=pb.Fatal(status=301, text='the fake device has fallen off'))
            return
        self.send(hello=pb.EngineHello(version=2 if how == 'version' else 1, pid=os.getpid(), ranks=1, nonce=adopt.nonce,
                                       loaded=bool(self.loaded)))
        if self.loaded:
            self.send(**self.loaded)

    def run(self):
        self.send(hello=pb.EngineHello(version=1, pid=os.getpid(), ranks=1))
        while time.monotonic() - self.heard < 60:
            if not self.socket.poll(500):
                self.send(heartbeat=pb.Heartbeat(steps=0))
                continue
            self.heard = time.monotonic()
            m = pb.FrontMessage.FromString(self.socket.recv())
            body = m.WhichOneof('body')
            if body == 'load':
                self.load(m.load)
            elif body == 'fill':
                self.fill(m.fill)
            elif body == 'contract':
                self.contract(m.contract)
            elif body == 'eigen':
                self.eigen(m.eigen)
            elif body == 'eigen_cancel':
                self.eigen_cancel(m.eigen_cancel)
            elif body == 'eigen_drop':
                self.kept.pop(m.eigen_drop.name, None)
            elif body == 'cancel':
                self.cancel(m.cancel)
            elif body == 'refresh':
                self.to_refresh = m.refresh
                self.refresh()
            elif body == 'adopt':
                self.adopt(m.adopt)
            elif body == 'stop':
                return


if __name__ == '__main__':
    if 'FAKE_ADOPT' not in os.environ:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: goes with the front
    os.write(2, os.environ.get('FAKE_SAYS', '').encode())
    FakeEngine(sys.argv[sys.argv.index('--front') + 1]).run()
