"""What the tests of quarkctl have in common: programs, one weak configuration with its oracle, files of fields."""
import math
import os
import subprocess
import tempfile

import tap
try:
    import h5py
    import numpy as np
    import ref_dirac as ref
except ImportError as missing:
    tap.skip_all('python3-h5py, numpy and scipy are needed: %s' % missing)
from daemon import Daemon, run_ctl
from disk import Disk, preloaded

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..'))
GAUGE, DIMS = 'builtin:weak:4x4x4x8:1', [4, 4, 4, 8]
KAPPA, CSW = 0.12, 1.3
SHAPE = tuple(reversed(DIMS)) + (4, 3)
COLUMN_BYTES = 16 * math.prod(SHAPE)
USAGE, DATA, UNAVAILABLE, AGAIN, CONFIG = 64, 65, 69, 75, 78


class Case:
    def __init__(self, quarkd, quarkctl, quark_gauge, engine, example, shim=None):
        self.quarkd, self.quarkctl, self.quark_gauge = quarkd, quarkctl, quark_gauge
        self.engine, self.example = os.path.abspath(engine), example
        self.shim = shim
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'weak.lime')
            subprocess.run([quark_gauge, 'convert', GAUGE, path], check=True, stdout=subprocess.DEVNULL)
            self.links, _ = ref.load_any(path)
        self.op = ref.WilsonClover(self.links, 1 / (2 * KAPPA) - 4, CSW)

    def daemon(self, *args, **kwargs):
        return Daemon(self.quarkd, self.quarkctl, '--gauge=' + GAUGE, '--kappa=%r' % KAPPA, '--csw=%r' % CSW, *args, **kwargs)

    def ctl(self, *args, **kwargs):
        return run_ctl(self.quarkctl, *args, **kwargs)

    def disk(self, folder):
        """The disk below the folder, as a quarkctl sees it that has the disk's environment."""
        return Disk(preloaded(self.shim, self.quarkctl), folder)

    def residual(self, x, b):
        return np.linalg.norm(b - self.op.apply(x)) / np.linalg.norm(b)


def random_sources(n, dtype=complex, seed=5):
    return (np.random.default_rng(seed).normal(size=(n,) + SHAPE + (2,)) @ np.array([1, 1j])).astype(dtype)


def write_sources(path, b, name='field', **attributes):
    with h5py.File(path, 'w') as f:
        f[name] = b
        f.attrs.update(attributes)


def read_field(path):
    with h5py.File(path, 'r') as f:
        return f['field'][...]


class StaggeredCase(Case):
    """The same links with staggered fermions."""

    def daemon(self, *args, action='staggered', mass='0.7', **kwargs):
        return Daemon(self.quarkd, self.quarkctl, '--gauge=' + GAUGE, '--action=' + action, '--mass=' + mass, '--solver=cg', *args, **kwargs)

    def off(self, x, b, mass):
        """|b - M x| / |b|"""
        op = ref.ACTIONS['staggered'](self.links, ref.ANTIPERIODIC, mass=mass)
        return np.linalg.norm(b - op.apply(x)) / np.linalg.norm(b)
