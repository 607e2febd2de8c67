"""Plays the front to a quark-engine: starts it, talks engine.proto, holds shared-memory vectors.

Needs python3-zmq, python3-protobuf and protoc. Import fails where one is missing.
"""
import contextlib
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import zmq

ROOT = os.environ.get('QK_SOURCE_ROOT') or os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..')
GENERATED = tempfile.TemporaryDirectory(prefix='qk-proto-')
subprocess.run(['protoc', '-I', os.path.join(ROOT, 'proto'), '--python_out', GENERATED.name, 'quark.proto',
                'engine.proto'], check=True)
sys.path.insert(0, GENERATED.name)
import engine_pb2 as pb  # noqa: E402
import quark_pb2 as qk   # noqa: E402

TIMEOUT = 120.0  # seconds that a test waits for any message
LINKS = {'none': qk.LINK_SMEAR_NONE, 'ape': qk.LINK_SMEAR_APE, 'stout': qk.LINK_SMEAR_STOUT, 'hyp': qk.LINK_SMEAR_HYP}
REAL = {qk.DTYPE_F32: np.dtype('<c8'), qk.DTYPE_F64: np.dtype('<c16')}


class Vector:
    """A global vector in a POSIX shared-memory object, [t][z][y][x][spin][colour]."""
    count = 0

    def __init__(self, shape, dtype=qk.DTYPE_F64, data=None, bytes=None):
        Vector.count += 1
        self.name = '/qk-test-%d-%d' % (os.getpid(), Vector.count)
        self.path = '/dev/shm' + self.name
        size = int(np.prod(shape)) * REAL[dtype].itemsize if bytes is None else bytes
        with open(self.path, 'xb') as f:
            f.truncate(size)
        self.shape, self.dtype = shape, dtype
        if data is not None:
            np.memmap(self.path, REAL[dtype], 'r+', shape=shape)[...] = data

    def read(self):
        """Its numbers as complex doubles."""
        return np.fromfile(self.path, REAL[self.dtype]).reshape(self.shape).astype(complex)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.unlink(self.path)


def smearing(spec):
    """'gauss:alpha,steps' or 'gauss:alpha,steps+ape:0.5,2': the message; link part as in smear_ref."""
    gauss, _, links = spec.partition('+')
    alpha, steps = gauss.split(':')[1].split(',')
    s = qk.Smearing(alpha=float(alpha), steps=int(steps))
    if links:
        kind, words = links.split(':')
        words = words.split(',')
        s.link_spatial = words[-1] != '4d'
        numbers = [float(w) for w in words if w != '4d']
        s.links, s.link_steps = LINKS[kind], int(numbers[-1])
        s.link_param[:] = numbers[:-1]
    return s


def operator(mass, csw):
    """Members of LOAD: Wilson-clover, or Wilson if csw is 0."""
    given = dict(mass=mass, csw=csw) if csw != 0 else dict(mass=mass)
    return dict(action='wilson-clover' if csw != 0 else 'wilson',
                parameter=[qk.Setting(key=key, value=repr(float(value))) for key, value in given.items()])


class Engine:
    """One quark-engine, from start to end; a context manager that leaves no process behind."""

    def __init__(self, binary, ranks=1, options=(), wrapper=(), env=None, last_env=None):
        """env: of all ranks; last_env: of the last one alone."""
        self.binary = binary
        self.dir = tempfile.mkdtemp(prefix='qk-engine-')
        self.context = zmq.Context()
        self.endpoint = 'ipc://%s/front' % self.dir
        self.bind()
        command = [binary, '--front', self.endpoint, '--log-level', 'warn', *options]
        if ranks > 1:
            last = 'test $OMPI_COMM_WORLD_RANK -lt %d || export %s; exec "$@"' % (
                ranks - 1, ' '.join('%s=%s' % item for item in (last_env or {'QK_LAST': 1}).items()))
            command = ['mpirun', '-np', str(ranks), 'sh', '-c', last, 'sh'] + command
        else:
            env = {**(env or {}), **(last_env or {})}
        self.process = subprocess.Popen([*wrapper, *command], stdin=subprocess.DEVNULL,
                                        env={**os.environ, **(env or {})})
        self.serials = 0
        self.pinged = time.monotonic()
        self.hello = self.expect('hello')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            if self.process.poll() is None:
                self.stop()  # MPI leaves its shared memory behind when it is killed
        except Exception:
            self.process.kill()
            self.process.wait()
        self.socket.close()
        self.context.term()
        shutil.rmtree(self.dir)

    def bind(self):
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.SNDTIMEO, int(1e3 * TIMEOUT))
        self.socket.bind(self.endpoint)

    def rebind(self):
        """Another front in place of the first."""
        self.socket.close()
        self.bind()

    # ---- messages

    def send(self, **body):
        self.socket.send(pb.FrontMessage(**body).SerializeToString())

    def receive(self, heartbeats=False):
        """(name of the body, body) of the next message; heartbeats only if asked for."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            if time.monotonic() > self.pinged + 1:
                self.pinged = time.monotonic()
                self.send(ping=pb.FrontPing())
            if not self.socket.poll(1000):
                if self.process.poll() is not None:
                    raise ChildProcessError('the engine has left with %d' % self.process.poll())
                continue
            m = pb.EngineMessage.FromString(self.socket.recv())
            name = m.WhichOneof('body')
            if heartbeats or name != 'heartbeat':
                return name, getattr(m, name)
        raise TimeoutError('no message from the engine in %g s' % TIMEOUT)

    def expect(self, wanted, skip=()):
        """The next message, whose body must be `wanted`; those in skip are passed over."""
        while True:
            name, body = self.receive()
            if name == wanted:
                return body
            assert name in skip, 'got %s instead of %s: %s' % (name, wanted, body)

    def heartbeat(self):
        """The next heartbeat; nothing else may come before it."""
        name, body = self.receive(heartbeats=True)
        assert name == 'heartbeat', body
        return body

    # ---- what a front does

    def load(self, gauge, mass=0.1, csw=1.2, slots=2, boundary=(1, 1, 1, -1), solver='bicgstab',
             inner='PRECISION_SINGLE', backend='cpu', **more):
        phases = [r for b in boundary for r in (complex(b).real, complex(b).imag)]
        self.send(load=pb.Load(gauge=gauge, slots=slots, boundary=phases, solver=solver, inner=inner, backend=backend,
                               **{**operator(mass, csw), 'link_reals': 18, 'single_rhs': False, **more}))

    def ready(self):
        return self.expect('ready', skip=('load_progress',))

    def fill(self, entry, tol=1e-10, max_iter=2000, **more):
        """Sends FILL and returns its serial."""
        self.serials += 1
        body = dict(entry=entry, serial=self.serials, source=qk.SOURCE_UPLOAD, dtype=qk.DTYPE_F64,
                    basis=qk.BASIS_DEGRAND_ROSSI, factor=1.0, tol=tol, max_iter=max_iter)
        body.update(more)
        self.send(fill=pb.Fill(**body))
        return self.serials

    def done(self, count=1):
        """{serial: FillDone} of the next `count` slots that end."""
        ends = [self.expect('fill_done', skip=('fill_progress', 'multigrid')) for _ in range(count)]
        return {e.serial: e for e in ends}

    def solve(self, b, entry=0, dtype=qk.DTYPE_F64, **more):
        """One upload: (x, FillDone)."""
        with Vector(b.shape, dtype, b) as source, Vector(b.shape, dtype) as sink:
            serial = self.fill(entry, shm_in=source.name, shm_out=sink.name, dtype=dtype, **more)
            end = self.done()[serial]
            return sink.read(), end

    def generate(self, shape, source, entry=0, column=None, **more):
        """One generated source: (x, FillDone)."""
        with Vector(shape) as sink:
            serial = self.fill(entry, source=source, column=qk.Column(**(column or {})), shm_out=sink.name, **more)
            end = self.done()[serial]
            return sink.read(), end

    def contract(self, a, b=(), channels=((qk.CHANNEL_MESON, 15, 15),), out=None, dtype_a=qk.DTYPE_F64, skip=('fill_progress',),
                 **more):
        """Contracts propagators, given as lists of vectors; channels are (kind, sink, source). Returns
        (what stands in `out`, None after a failure; Contracted)."""
        contraction = dict(momentum=[], origin=[])
        contraction.update({k: more.pop(k) for k in ('momentum', 'origin', 'sink') if k in more})
        self.serials += 1
        message = pb.Contract(
            serial=self.serials, dtype_a=dtype_a, shm_a=[v.name for v in a], shm_b=[v.name for v in b], shm_out=out.name,
            contraction=qk.Contraction(request_a=0, channel=[qk.Channel(kind=k, sink=i, source=o) for k, i, o in channels],
                                       **contraction))
        for name, value in more.items():
            setattr(message, name, value)
        self.send(contract=message)
        end = self.expect('contracted', skip)
        assert end.serial == self.serials
        return (out.read() if end.status == 0 else None), end

    # ---- ends

    def wait(self):
        """The exit code."""
        return self.process.wait(TIMEOUT)

    def stop(self):
        self.send(stop=pb.Stop())
        return self.wait()

    def ranks(self):
        """The processes of the engine, without what has started them."""
        found = []
        for path in glob.glob('/proc/[0-9]*/cmdline'):
            with contextlib.suppress(OSError), open(path, 'rb') as f:
                words = f.read().decode(errors='replace').split('\0')
                if words[0] == self.binary and self.endpoint in words:
                    found.append(int(path.split('/')[2]))
        return sorted(found)
