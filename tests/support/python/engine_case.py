"""What the tests of quark-engine share: a lattice, the numpy oracle of it, and engines that have loaded it."""
import os
import subprocess
import tempfile

import numpy as np

import ref_dirac as ref
from engine_driver import Engine, pb, qk

DIMS = (4, 4, 8, 8)  # may be cut in four
GAUGE = 'builtin:weak:4x4x8x8:7'
MASS, CSW, BOUNDARY = 0.1, 1.2, (1, 1, 1, -1)
OK, BAD_GEOMETRY, BAD_ARGUMENT, TOO_LARGE, NOT_READY, BAD_PROTOCOL = 0, 101, 100, 107, 114, 112
NOT_CONVERGED, NAN_INPUT, CANCELLED = 200, 202, 203
DEVICE_MEMORY, DEVICE_ERROR = 300, 301

E2 = np.array([[0, 1], [-1, 0]])
# T of gamma_basis.h: a spinor psi in the basis is T psi in DeGrand-Rossi
BASES = {qk.BASIS_UKQCD: np.block([[-E2, -E2], [-E2, E2]]) / np.sqrt(2),
         qk.BASIS_DIRAC_PAULI: np.block([[E2, -E2], [E2, E2]]) / np.sqrt(2),
         qk.BASIS_OPENQCD: np.block([[0 * E2, -E2], [E2, 0 * E2]])}


def eigen_ask(e, out=None, file=None, restore=False, **problem):
    """Sends EIGEN; returns its serial."""
    e.serials += 1
    message = pb.Eigen(serial=e.serials, problem=qk.EigenProblem(**problem), restore=restore)
    if out:
        message.shm_out = out.name
    if file:
        message.file = file
    e.send(eigen=message)
    return e.serials


def eigen_ends(e, serial):
    done = e.expect('eigen_done', skip=('eigen_progress', 'fill_progress'))
    assert done.serial == serial, done
    return done


class Case:
    def __init__(self, engine, quark_gauge, ranks):
        self.binary, self.quark_gauge, self.ranks = engine, quark_gauge, int(ranks)
        self.links = self.links_of(GAUGE)
        self.op = ref.WilsonClover(self.links, MASS, CSW, BOUNDARY)
        self.shape = self.op.shape

    def links_of(self, gauge):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'weak.lime')
            subprocess.run([self.quark_gauge, 'convert', gauge, path], check=True, stdout=subprocess.DEVNULL)
            return ref.load_any(path)[0]

    def start(self, **more):
        return Engine(self.binary, self.ranks, **more)

    def with_action(self, gauge, action, given, **load):
        """Loaded by CG with an action and its parameters, in tests/ref's words."""
        parameter = [qk.Setting(key=k.replace('_', '-'), value=repr(v)) for k, v in given.items()]
        return self.loaded(gauge=gauge, **{**dict(action=action, parameter=parameter, grid=(1, 1, 1, self.ranks), solver='cg'), **load})

    def loaded(self, env=None, last_env=None, gauge=GAUGE, **load):
        engine = self.start(env=env, last_env=last_env)
        try:
            engine.load(gauge, **{**dict(mass=MASS, csw=CSW, boundary=BOUNDARY), **load})
            engine.facts = engine.ready()
        except BaseException:
            engine.__exit__()
            raise
        return engine

    def endless(self, **load):
        """Loaded so that no solve ends: GCR stagnates where M is as indefinite as here."""
        return self.loaded(mass=-2, csw=0, solver='gcr', inner='PRECISION_DOUBLE', **load)

    def random(self, seed):
        return np.random.default_rng(seed).normal(size=self.shape + (2,)) @ np.array([1, 1j])

    def residual(self, x, b):
        return np.linalg.norm(b - self.op.apply(x)) / np.linalg.norm(b)
