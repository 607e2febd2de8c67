"""Checks of fat_ref.py itself, by properties that its formulas must have."""
import os
import sys
import numpy as np
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fat_ref  # noqa: E402
import make_vectors  # noqa: E402
import ref_dirac as ref  # noqa: E402

RNG = np.random.default_rng(3)
DIMS = (4, 2, 6, 4)
U = make_vectors.random_links(RNG, DIMS, 0.4)
G = ref.reunitarise(RNG.normal(size=DIMS[::-1] + (3, 3, 2)) @ np.array([1, 1j]))
RECIPES = {'asqtad': lambda u: fat_ref.asqtad(u, 1), 'hisq': lambda u: fat_ref.hisq(u, 0),
           'asqtad, u0': lambda u: fat_ref.asqtad(u, 0.87), 'hisq, epsilon': lambda u: fat_ref.hisq(u, -0.3)}


def distance(a, b):
    return np.abs(a - b).max()


def rotated(u, g, reach=1):
    """g(x) U_mu(x) g(x + reach mu)^+"""
    return np.stack([g @ u[mu] @ ref.dag(ref.shift(g, mu, reach)) for mu in range(4)])


def coupling(recipe, mu, k, polarisation):
    """Of fat + long to an abelian wave A_nu(x) = polarisation_nu cos(k.(x + nu/2)) in first order: the largest change."""
    size, x = 1e-4, np.indices((2, 2, 2, 2))[::-1]
    changes = []
    for sign in (1, -1):
        wave = np.stack([np.cos(np.tensordot(k, x, 1) + k[nu] / 2) * polarisation[nu] for nu in range(4)])
        u = np.exp(1j * sign * size * wave)[..., None, None] * np.eye(3)
        f, n = recipe(u)
        changes.append(f[mu] + n[mu])
    return distance(*changes) / (2 * size)


checks = {}
ones = np.broadcast_to(np.eye(3, dtype=complex), U.shape)
for name, recipe in RECIPES.items():
    f, n = recipe(U)
    f2, n2 = recipe(ref.gauge_rotate(U, G))
    checks[name + ': covariant'] = max(distance(f2, rotated(f, G)), distance(n2, rotated(n, G, 3))) < 1e-12
    checks[name + ': U* for U*'] = max(distance(a, b.conj()) for a, b in zip(recipe(U.conj()), (f, n))) < 1e-12
for name in 'asqtad', 'hisq':
    f, n = RECIPES[name](ones)
    checks[name + ': fat + 3 long is 1 on unit links'] = distance(f + 3 * n, ones) < 1e-14
    checks[name + ': 9/8 and -1/24 on unit links'] = max(distance(f, 9 / 8 * ones), distance(n, -1 / 24 * ones)) < 1e-14
f, n = RECIPES['hisq, epsilon'](ones)
checks['hisq, epsilon: fat + 3 long is 1 on unit links'] = distance(f + 3 * n, ones) < 1e-14
W = fat_ref.reunitarised(U)
checks['W is unitary'] = distance(W @ ref.dag(W), np.eye(3)) < 1e-13
A = RNG.normal(size=(50, 3, 3, 2)) @ np.array([1, 1j])
SQUARES, V = np.linalg.eigh(ref.dag(A) @ A)
checks['projection by the root of A^+ A'] = distance(fat_ref.nearest_u3(A), A @ (V / np.sqrt(SQUARES)[:, None]) @ ref.dag(V)) < 1e-10
# Taste exchange: gluons with k_mu = 0 and other components 0 or pi, not all 0, do not couple to quarks in tree order.
for name in 'asqtad', 'hisq':
    worst = max(coupling(RECIPES[name], 3, np.pi * np.array([*corner, 0]), (0, 0, 0, 1)) for corner in np.ndindex(2, 2, 2) if any(corner))
    checks[name + ': no coupling to gluons of the corners'] = worst < 1e-7
    checks[name + ': couples to smooth gluons'] = abs(coupling(RECIPES[name], 3, np.zeros(4), (0, 0, 0, 1)) - 1) < 1e-6
for name, good in checks.items():
    print('%-55s %s' % (name, 'ok' if good else 'FAIL'))
sys.exit(0 if all(checks.values()) else 1)
