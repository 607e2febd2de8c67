"""Staggered fermions of a daemon, judged by numpy."""
import numpy as np
from daemon_case import GAUGE, DaemonCase
from front_driver import Daemon

MASS = 0.3
AXIS = 3, 2, 1, 0  # of x, y, z, t in [t][z][y][x]


class Staggered(DaemonCase):
    """m + D/2 by shifts of whole arrays: signs 1, (-1)^x, (-1)^(x+y), (-1)^(x+y+z), antiperiodic in t."""

    def __init__(self, *programs):
        super().__init__(*programs)
        self.lattice = self.links.shape[1:5]
        t, z, y, x = np.indices(self.lattice)
        eta = np.ones(self.lattice), (-1.0) ** x, (-1.0) ** (x + y), (-1.0) ** (x + y + z)
        u = [self.links[mu] * eta[mu][..., None, None] for mu in range(4)]
        u[3] = u[3] * np.where(t == self.lattice[0] - 1, -1, 1)[..., None, None]
        self.u = u

    def daemon(self, *options, **more):
        return Daemon(self.binary, '--action', 'staggered', '--solver', 'cg', '--ranks', self.ranks, *options,
                      **{'engine': self.engine, 'gauge': GAUGE, 'mass': str(MASS), **more})

    def lasting_engine(self, _):
        return self.engine

    def field(self, x):
        return np.asarray(x).reshape(self.lattice + (3,))

    def apply(self, x, dagger=False, mass=MASS):
        x, d = self.field(x), 0
        for u, axis in zip(self.u, AXIS):
            ahead = np.einsum('...ab,...b->...a', u, np.roll(x, -1, axis))
            back = np.roll(np.einsum('...ba,...b->...a', u.conj(), x), 1, axis)
            d = d + ahead - back
        return mass * x + (-0.5 if dagger else 0.5) * d

    def noise(self, seed):
        rng = np.random.default_rng(seed)
        n = int(np.prod(self.lattice)) * 3
        return rng.standard_normal(n) + 1j * rng.standard_normal(n)

    def residual(self, x, b, mass=MASS):
        b = self.field(b)
        return np.linalg.norm(self.apply(x, mass=mass) - b) / np.linalg.norm(b)

    def point(self, colour, site=(1, 2, 3, 2)):
        b = np.zeros(self.lattice + (3,), complex)
        b[site[::-1] + (colour,)] = 1
        return b


def fetch_all(c, n):
    found = [None] * n
    for r in c.results(n):
        assert r.status == 0, r
        found[r.rhs] = c.fetch(r)
    return found


def solve(c, fields, **more):
    accepted = c.submit(len(fields), **{'tol': 1e-10, **more})
    c.upload(accepted, fields)
    return fetch_all(c, len(fields))
