"""Checks of wall_ref.py and of DomainWall in ref_dirac.py. Part of `meson test`."""
import os
import sys

os.environ.setdefault('OMP_NUM_THREADS', '1')
import numpy as np  # noqa: E402
import ref_dirac as ref  # noqa: E402
import wall_ref as wall  # noqa: E402

rng = np.random.default_rng(11)
OMEGA = np.array([1.3 + 0.2j, 0.8 - 0.1j, 0.8 - 0.1j, 1.3 + 0.2j])
count = bad = 0


def report(name, err, tol):
    global count, bad
    count += 1
    good = bool(err <= tol)
    bad += not good
    print('%sok %d - %s: %.1e, at most %.0e' % ('' if good else 'not ', count, name, err, tol), flush=True)


def links(shape, spread=0.4):
    """Random, of T, Z, Y, X."""
    a = spread * (rng.normal(size=(4,) + shape + (3, 3)) + 1j * rng.normal(size=(4,) + shape + (3, 3)))
    return ref.reunitarise(np.eye(3) + a)


def random(shape):
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def off(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


def check_overlap():
    u = links((2, 2, 2, 2))
    for name, omega, b, c in (('Shamir', np.ones(4), 1.0, 0.0), ('Moebius', np.ones(4), 1.6, 0.6), ('zMoebius', OMEGA, 1.3, 0.3)):
        bs, cs = wall.scaled(omega, b, c)
        op = ref.DomainWall(u, ref.ANTIPERIODIC, 0.2, 1.4, 4, bs, cs)
        d = wall.dense_wilson(op)
        m = wall.dense(op, d)
        psi = random((4,) + op.shape)
        report('%s: the dense matrix is the operator' % name, off((m @ psi.ravel()).reshape(psi.shape), op.apply5(psi)), 1e-13)
        eta = random(op.shape)
        q = op.leave(np.linalg.solve(m, op.enter(eta).ravel()).reshape(psi.shape))
        report('%s: overlap with the rational sign function of this Ls' % name,
               off(q.ravel(), wall.overlap_propagator(op, d, omega, b, c) @ eta.ravel()), 1e-12)


def check_ward():
    u = links((4, 2, 2, 2))
    for name, ls, more in (('Shamir', 4, dict(xi0=3.1, nu=1.2)), ('Moebius', 4, dict(b=1.6, c=0.6)), ('Moebius, b - c = 0.4', 2, dict(b=1.3, c=0.9)),
                           ('Moebius, anisotropic', 6, dict(b=1.5, c=0.5, xi0=0.8, nu=1.1))):
        op = ref.DomainWall(u, (1, 1j, 1, -1), 0.2, 1.4, ls, **more)
        eta = random(op.shape)
        psi = op.solve5(op.enter(eta), 1e-12)
        want = wall.ward(op, psi, eta)
        got = wall.divergence(op, [wall.axial_current(op, psi, eta, mu) for mu in range(4)])
        report('%s: axial Ward identity at every site' % name, off(got, want), 1e-10)


check_overlap()
check_ward()
print('1..%d' % count)
sys.exit(bool(bad))
