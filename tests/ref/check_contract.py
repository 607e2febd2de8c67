"""Checks of contract_ref.py and free_ref.py that need no outside data: run it, every line must say ok."""
import itertools
import os
import sys
import numpy as np
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import contract_ref
import free_ref
import ref_dirac as ref

rng = np.random.default_rng(3)
bad = 0


def report(name, err, tol):
    global bad
    bad += not err <= tol
    print('%-74s %.2e  %s' % (name, err, 'ok' if err <= tol else 'FAIL'))


def off(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


g = contract_ref.gamma
c = contract_ref.C
report('C g_mu C^-1 = -g_mu^T', max(np.abs(c @ m @ np.linalg.inv(c) + m.T).max() for m in ref.GAMMA), 0)
report('gamma 15 is gamma5', np.abs(g(15) - ref.GAMMA5).max(), 0)

lat, momenta, origin = (4, 2, 2, 4), [(0, 0, 0), (1, -1, 2)], (3, 1, 0, 2)
a, b = contract_ref.random_propagator(rng, lat), contract_ref.random_propagator(rng, lat)
pairs = contract_ref.mesons(a, b, momenta, origin)
report('mesons one by one', max(off(pairs[:, :, i, j], contract_ref.meson(a, b, i, j, momenta, origin))
                                for i, j in ((15, 15), (0, 7), (9, 2))), 1e-13)
# g5 G^+ g5 is G or -G, so exchanging the quarks is complex conjugation at the opposite momentum but for a sign
swapped = contract_ref.mesons(b, a, [tuple(-n for n in p) for p in momenta], origin).conj()
sign = np.array([np.trace(ref.GAMMA5 @ g(n).conj().T @ ref.GAMMA5 @ g(n).conj().T).real / 4 for n in range(16)])
report('exchange of quark and antiquark', off(np.einsum('A,B,ptAB->ptAB', sign, sign, swapped), pairs), 1e-13)

# Wick's theorem by determinants: <q1 q2 q3 q3^+ q2^+ q1^+> is that of the 3x3 matrix <q_i q_j^+>, here for one site
one = (1, 1, 1, 1)
s = contract_ref.random_propagator(rng, one)
plus = np.einsum('satb,tu->saub', s[0, 0, 0, 0], ref.GAMMA[3])                      # <q q^+>
first = [c @ ref.GAMMA[i] for i in range(3)]
want = np.zeros((3, 3, 4, 4), complex)
epsilon = contract_ref.PERMUTATIONS
nonzero = [[(x, y) for x in range(4) for y in range(4) if m[x, y] != 0] for m in first]
for i, j, x, y in itertools.product(range(3), range(3), range(4), range(4)):
    for (p, e), (q, f), (m, n), (k, h) in itertools.product(epsilon, epsilon, nonzero[i], nonzero[j]):
        rows, columns = [(m, p[0]), (n, p[1]), (x, p[2])], [(k, q[0]), (h, q[1]), (y, q[2])]
        det = np.linalg.det([[plus[r + col] for col in columns] for r in rows])
        want[i, j, x, y] += e * f * first[i][m, n] * np.conj(first[j][k, h]) * det
want = want @ ref.GAMMA[3]                                                          # Bbar = B^+ g_t
report('Delta by determinants', off(contract_ref.delta(s, [(0, 0, 0)], (0, 0, 0, 0))[0, 0], want), 1e-12)
# two flavours: a determinant for u, one number for d
want = np.zeros((4, 4), complex)
g5 = c @ ref.GAMMA5
d = contract_ref.random_propagator(rng, one)
plus_d = np.einsum('satb,tu->saub', d[0, 0, 0, 0], ref.GAMMA[3])
spins = [(x, y) for x in range(4) for y in range(4) if g5[x, y] != 0]
for x, y in itertools.product(range(4), range(4)):
    for (p, e), (q, f), (m, n), (k, h) in itertools.product(epsilon, epsilon, spins, spins):
        rows, columns = [(m, p[0]), (x, p[2])], [(k, q[0]), (y, q[2])]
        det = np.linalg.det([[plus[r + col] for col in columns] for r in rows])
        want[x, y] += e * f * g5[m, n] * np.conj(g5[k, h]) * det * plus_d[n, p[1], h, q[1]]
want = want @ ref.GAMMA[3]
report('nucleon by determinants', off(contract_ref.nucleon(s, d, [(0, 0, 0)], (0, 0, 0, 0))[0, 0], want), 1e-12)

dims = (4, 6, 2, 8)
momenta = [(0, 0, 0), (1, -2, 1)]
free = [free_ref.time_momentum(dims, m) for m in (0.3, 0.6)]
x = [free_ref.position(f, dims) for f in free]
unit = np.broadcast_to(np.eye(3, dtype=complex), (4,) + dims[::-1] + (3, 3)).copy()
op = ref.WilsonClover(unit, 0.3, 1.0)
report('free propagator solves the operator',
       np.abs(op.apply(x[0][..., 2, 1]) - ref.point_source(op, 2, 1)).max(), 1e-13)
report('free mesons in momentum and position space',
       off(free_ref.mesons(*free, dims, momenta), contract_ref.mesons(*x, momenta, (0, 0, 0, 0))), 1e-12)
sys.exit(bad)
