"""Checks of fix_ref.py itself: theta is the gradient of the functional; unit links, waves, covariance."""
import sys
import os
import numpy as np
import scipy.linalg
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fix_ref as fix  # noqa: E402
import make_vectors  # noqa: E402
import ref_dirac as ref  # noqa: E402

RNG = np.random.default_rng(3)
DIMS = (4, 2, 6, 4)
VOLUME = int(np.prod(DIMS))
U = make_vectors.random_links(RNG, DIMS, 0.4)
ONE = np.broadcast_to(np.eye(3, dtype=complex), U.shape)
X = np.indices(DIMS[::-1])[::-1]


def generators():
    """Hermitian, traceless, tr T_a T_b = 2 delta_ab."""
    out = []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        for value in 1, -1j:
            t = np.zeros((3, 3), complex)
            t[i, j], t[j, i] = value, np.conj(value)
            out.append(t)
    return out + [np.diag([1, -1, 0]).astype(complex), np.diag([1, 1, -2]) / np.sqrt(3)]


def slope(site, t, gauge):
    step = 1e-4
    values = []
    for sign in 1, -1:
        g = ONE[0].copy()
        g[site] = scipy.linalg.expm(1j * sign * step * t)
        values.append(fix.functional(ref.gauge_rotate(U, g), gauge))
    return (values[0] - values[1]) / (2 * step)


def wave(direction, along):
    """Weak abelian links of one direction, a wave along another; in the middle of links."""
    p = 2 * np.pi / DIMS[along]
    u = ONE.copy()
    angle = 1e-5 * np.cos(p * (X[along] + (0.5 if along == direction else 0)))
    for k in (0, 1):
        u[direction, ..., k, k] = np.exp(1j * (1, -1)[k] * angle)
    return u


checks = {}
for gauge, n in fix.DIRECTIONS.items():
    d = fix.divergence(U, gauge)
    for site in (0, 0, 0, 0), (3, 5, 1, 2):
        gradient = sum((3 * n * VOLUME * slope(site, t, gauge))**2 for t in generators())
        want = (np.abs(d[site])**2).sum() / 2
        checks['%s: theta is the gradient at %s' % (gauge, site)] = abs(gradient / want - 1) < 1e-6
    checks[gauge + ': unit links'] = fix.functional(ONE, gauge) == 1 and fix.theta(ONE, gauge) == 0
    h = np.broadcast_to(ref.reunitarise(RNG.normal(size=(3, 3, 2)) @ np.array([1, 1j])), ONE[0].shape)
    checks[gauge + ': the same after a constant rotation'] = abs(
        fix.theta(ref.gauge_rotate(U, h), gauge) / fix.theta(U, gauge) - 1) < 1e-12
    checks[gauge + ': transverse waves are fixed'] = fix.theta(wave(0, 1), gauge) < 1e-24
    # |D|^2 = 2 (2 size 2 sin(p/2) sin(p x))^2, mean of sin^2 = 1/2
    want = 2 * (2e-5 * 2 * np.sin(np.pi / DIMS[2]))**2 / 2 / 3
    checks[gauge + ': longitudinal waves are not'] = abs(fix.theta_of_slices(wave(2, 2), gauge).mean() / want - 1) < 1e-6
checks['coulomb: waves in time are fixed'] = fix.theta(wave(3, 3), 'coulomb') == 0 < fix.theta(wave(3, 3), 'landau')
checks['coulomb: the worst slice counts'] = fix.theta(U, 'coulomb') == fix.theta_of_slices(U, 'coulomb').max()
for name, good in checks.items():
    print('%-50s %s' % (name, 'ok' if good else 'FAIL'))
sys.exit(0 if all(checks.values()) else 1)
