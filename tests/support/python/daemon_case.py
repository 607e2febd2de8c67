"""What tests of quarkd with the real engine share: a lattice, the numpy oracle of it, and daemons that load it."""
import os
import subprocess
import tempfile

import numpy as np

import ref_dirac as ref
from front_driver import Daemon

DIMS, MASS, CSW = (4, 4, 8, 8), 0.1, 1.2
GAUGE = 'builtin:weak:%dx%dx%dx%d:7' % DIMS


class DaemonCase:
    def __init__(self, quarkd, engine, quark_gauge, ranks='1'):
        self.binary, self.engine, self.quark_gauge, self.ranks = quarkd, engine, quark_gauge, ranks
        with tempfile.TemporaryDirectory() as folder:
            self.links, _ = ref.load_any(self.convert(GAUGE, folder))
        self.op = ref.WilsonClover(self.links, MASS, CSW, (1, 1, 1, -1))
        self.shape = self.op.shape

    def convert(self, gauge, folder):
        """A file of the configuration."""
        path = os.path.join(folder, 'weak.lime')
        subprocess.run([self.quark_gauge, 'convert', gauge, path], check=True, stdout=subprocess.DEVNULL)
        return path

    def daemon(self, *options, **more):
        more = {'engine': self.engine, 'gauge': GAUGE, 'mass': str(MASS), **more}
        return Daemon(self.binary, '--csw', str(CSW), '--ranks', self.ranks, *options, **more)

    def residual(self, x, b):
        x, b = x.reshape(self.shape), b.reshape(self.shape)
        return np.linalg.norm(b - self.op.apply(x)) / np.linalg.norm(b)

    def noise(self, seed):
        n = int(np.prod(self.shape))
        return np.random.default_rng(seed).standard_normal(2 * n).view(complex)
