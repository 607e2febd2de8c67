"""A libquda for the look-alike header, callers of it, and a daemon whose answers the numpy oracle judges."""
import os
import shutil
import subprocess
import tempfile

import numpy as np
import ref_dirac as ref
from daemon_case import DaemonCase

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.normpath(os.path.join(HERE, '..', '..'))
SCRIPT = os.path.join(TOP, 'client', 'quda', 'quark-quda')
LOOKALIKE = os.path.join(HERE, 'lookalike')
DIMS, KAPPA, CSW = (4, 4, 4, 8), 0.12, 1.3
GAUGE = 'builtin:weak:4x4x4x8:1'
SHAPE = DIMS[::-1] + (4, 3)
MASS = 1 / (2 * KAPPA) - 4
EVEN = (np.indices(DIMS[::-1]).sum(0) % 2 == 0)[..., None, None]
G5 = np.diag(ref.GAMMA5).real[:, None]


def packed(blocks):
    """Terms [..][2][6][6] as programs pack them: 6 real diagonal elements, then the lower triangle by columns."""
    out = [blocks[..., i, i].real for i in range(6)]
    for j in range(6):
        for i in range(j + 1, 6):
            out += [blocks[..., i, j].real, blocks[..., i, j].imag]
    return np.ascontiguousarray(np.stack(out, -1))


class Caller:
    """Programs that were built with a libquda: one variant of the header, with or without MPI. Of what knows no header the objects of the
    build are taken, but for variant 2 without MPI and where flags are asked for."""

    def __init__(self, case, variant, mpi, flags=''):
        self.folder = tempfile.mkdtemp(prefix='qk-quda-')
        self.variant, self.mpi = variant, mpi
        self.flags = ('-DLOOKALIKE=%d %s' % (variant, flags)).split()
        command = [SCRIPT, '--header', LOOKALIKE, '--prefix', self.folder, '--cflags=-Werror %s ' % ('-O1' if variant == 2 else '-O0') + ' '.join(self.flags),
                   '--libquark', case.libquark + ',' + os.path.join(TOP, 'client'), '--cc', 'cc', '--mpi', 'mpicc' if mpi else 'none',
                   *(['--parts', case.parts] if mpi or not flags and variant != 2 else [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
        self.said = done.stdout

    def program(self, name):
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            lib, made = os.path.join(self.folder, 'lib'), '%s.%d' % (path, os.getpid())  # another test may make it, too
            sources = [os.path.join(HERE, 'callers', s + '.c') for s in (name, 'kit')]
            if name == 'chroma':
                subprocess.run(['cc', '-c', os.path.join(HERE, 'callers', 'qmp.c'), '-o', made + '.o'], check=True)
                subprocess.run(['ar', 'rcs', made + '.a', made + '.o'], check=True)
                sources.append(made + '.a')
            subprocess.run((['mpicc', '-DKIT_MPI'] if self.mpi else ['cc']) + ['-std=gnu11', '-O1', '-Wall', '-Wextra', '-Werror']
                           + self.flags + ['-I' + os.path.join(self.folder, 'include')] + sources + ['-o', made, '-L' + lib, '-lquda',
                           '-lm', '-ldl', '-Wl,-rpath,' + lib], check=True)
            os.replace(made, path)
        return path


class QudaCase(DaemonCase):
    def __init__(self, quarkd, engine, quark_gauge, libquark, parts, mpirun=''):
        self.binary, self.engine, self.quark_gauge, self.ranks = quarkd, engine, quark_gauge, '1'
        self.libquark, self.parts, self.mpirun = os.path.abspath(libquark), os.path.abspath(parts), mpirun
        self.folder, self.maker = tempfile.mkdtemp(prefix='qk-quda-case-'), os.getpid()
        subprocess.run([quark_gauge, 'convert', GAUGE, self.path('weak.lime')], check=True, stdout=subprocess.DEVNULL)
        self.links, _ = ref.load_any(self.path('weak.lime'))
        self.wire(self.links).tofile(self.path('links'))
        self.op = ref.WilsonClover(self.links, MASS, CSW)
        self.shape = SHAPE
        self.callers = {}

    def path(self, name):
        """A file of this test, in a folder of its own if tests run beside each other; or one that was there before."""
        common = os.path.join(self.folder, name)
        if os.getpid() == self.maker or os.path.exists(common):
            return common
        own = os.path.join(self.folder, '%d.d' % os.getpid())
        os.makedirs(own, exist_ok=True)
        return os.path.join(own, name)

    @staticmethod
    def wire(links):
        return np.ascontiguousarray(np.moveaxis(links, 0, 4))

    def caller(self, variant=2, mpi=False, flags=''):
        key = variant, mpi, flags
        if key not in self.callers:
            self.callers[key] = Caller(self, variant, mpi, flags)
        return self.callers[key]

    def daemon(self, *options, **more):
        return super().daemon(*options, **{'gauge': GAUGE, 'mass': repr(MASS), **more})

    def noise(self, seed, n=1):
        r = np.random.default_rng(seed)
        return r.normal(size=(n,) + SHAPE) + 1j * r.normal(size=(n,) + SHAPE)

    def command(self, d, name, b, variant=2, mpi=False, flags='', ranks=1, env=None, links='links', **arguments):
        """A caller for these sources, and its environment."""
        b.astype(complex).tofile(self.path('in'))
        np.zeros_like(b, dtype=complex).tofile(self.path('out'))
        words = ['%s=%s' % (k, v if isinstance(v, str) else repr(v)) for k, v in
                 {'dims': '%d,%d,%d,%d' % DIMS, 'links': self.path(links), 'in': self.path('in'), 'out': self.path('out'),
                  'columns': len(b), 'kappa': KAPPA, 'csw': CSW, **arguments}.items()]
        environment = {**os.environ, 'QUARKD_ENDPOINT': d.endpoint if d else 'tcp://127.0.0.1:1', 'QUARK_QUDA_LOG': '1', **(env or {})}
        return ([self.mpirun, '-n', str(ranks)] if mpi else []) + [self.caller(variant, mpi, flags).program(name)] + words, environment

    def solutions(self, b):
        return np.fromfile(self.path('out'), complex).reshape(b.shape)

    def run(self, d, name, b, *more, code=0, **arguments):
        """The solutions of a caller, and what it printed; with another exit code, only what it printed."""
        command, environment = self.command(d, name, b, *more, **arguments)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, timeout=120)
        said = done.stdout + done.stderr
        assert done.returncode == code, (done.returncode, said)
        return (self.solutions(b), said) if code == 0 else said

    def device(self):
        """The environment with a stand-in for the driver of a GPU."""
        folder = os.path.join(self.folder, 'cuda')
        os.makedirs(folder, exist_ok=True)
        subprocess.run(['cc', '-shared', '-fPIC', os.path.join(LOOKALIKE, 'cuda.c'), '-o', os.path.join(folder, 'libcuda.so.1')], check=True)
        return {'LD_LIBRARY_PATH': ':'.join([folder] + [p for p in [os.environ.get('LD_LIBRARY_PATH')] if p])}

    def clover(self, op, factor=1, name='clover'):
        """The file of T of this operator, times a factor."""
        packed(factor * (op.clover + (sum(op.hop) + op.m) * np.eye(6))).tofile(self.path(name))
        return self.path(name)

    def close(self):
        for folder in [self.folder] + [c.folder for c in self.callers.values()]:
            shutil.rmtree(folder, ignore_errors=True)


def largest(a):
    return abs(a).max()


def close(a, b, limit=1e-12):
    """To the largest element."""
    off = largest(a - b) / largest(b)
    assert off <= limit, off
