"""Checks of overlap_ref.py, on a lattice that is small enough for all eigenvectors of H. Part of `meson test`."""
import os
import sys

os.environ.setdefault('OMP_NUM_THREADS', '1')
import numpy as np  # noqa: E402
import overlap_ref  # noqa: E402
import ref_dirac as ref  # noqa: E402

rng = np.random.default_rng(12)
MASS = 0.2
count = bad = 0


def report(name, err, tol):
    global count, bad
    count += 1
    good = bool(err <= tol)
    bad += not good
    print('%sok %d - %s: %.1e, at most %.0e' % ('' if good else 'not ', count, name, err, tol), flush=True)


def random(shape):
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def off(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


u = ref.reunitarise(np.eye(3) + 0.2 * random((4, 4, 2, 2, 2, 3, 3)))
op = overlap_ref.Overlap(u, (1, 1j, 1, -1), MASS, 1.4)
psi = random(op.shape)
h = np.stack([op.h(e.reshape(op.shape)).ravel() for e in np.eye(op.n)], 1) * op.middle
report('H is hermitian', off(h, h.conj().T), 1e-13)
w, v = np.linalg.eigh(h)
sign = (v * np.sign(w)) @ v.conj().T
report('sgn(H) of all eigenvectors', off(op.sign(psi).ravel(), sign @ psi.ravel()), 1e-12)
rough = overlap_ref.Overlap(u, (1, 1j, 1, -1), MASS, 1.4, project=6, edge=2)
report('the operator as a sparse matrix', off(rough.matrix @ psi.ravel(), op.wilson.apply(psi).ravel()), 1e-14)
report('the lowest |h|', np.max(abs(np.sort(abs(w))[:7] - abs(rough.values))), 1e-12)
report('sgn(H) with eigenvectors projected', off(rough.sign(psi).ravel(), sign @ psi.ravel()), 1e-12)
g5 = np.broadcast_to(op.g5, op.shape).ravel()[:, None]
d = (0.5 * (1 + MASS)) * np.eye(op.n) + 0.5 * (1 - MASS) * g5 * sign
b = random(op.shape)
q = (np.linalg.solve(d, b.ravel()) - b.ravel()) / (1 - MASS)
report('a propagator has no residual', np.linalg.norm(op.residual(b, q)) / np.linalg.norm(b), 1e-11)
d0 = 0.5 * (np.eye(op.n) + g5 * sign)
dc = np.linalg.solve(np.eye(op.n) - d0, d0)
report('it is the inverse of D_c + m, D_c = D(0) / (1 - D(0))', off(dc @ q + MASS * q, b.ravel()), 1e-10)
report('and D_c anticommutes with gamma_5', off(g5 * dc, -dc * g5.T), 1e-9)
print('1..%d' % count)
sys.exit(bool(bad))
