"""Checks of smear_ref.py itself, by properties that its formulas must have."""
import sys
import os
import numpy as np
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_vectors  # noqa: E402
import ref_dirac as ref  # noqa: E402
import smear_ref as smear  # noqa: E402

RNG = np.random.default_rng(3)
DIMS = (4, 2, 6, 4)
U = make_vectors.random_links(RNG, DIMS, 0.4)
G = ref.reunitarise(RNG.normal(size=DIMS[::-1] + (3, 3, 2)) @ np.array([1, 1j]))
SPECS = ['ape:0.6,2', 'ape:0.5,1,4d', 'stout:0.1,2', 'stout:0.15,1,4d', 'hyp:0.75,0.6,0.3,1']


def distance(a, b):
    return np.abs(a - b).max()


checks = {}
a = RNG.normal(size=(200, 3, 3, 2)) @ np.array([1, 1j])
p = smear.project(a)
trace = np.einsum('nab,nab->n', p.conj(), a).real
best = np.array([smear.best_trace(m) for m in a])
checks['projection is in SU(3)'] = max(ref.su3_deviation(p)) < 1e-13
near = RNG.normal(size=(50, 3, 3, 2)) @ np.array([0.2, 0.2j]) + 1.3 * ref.reunitarise(a[:50])
checks['projection is the best near SU(3)'] = max(
    abs(np.vdot(smear.project(m), m).real - smear.best_trace(m)) for m in near) < 1e-6
checks['projection is never better than the best'] = (trace - best).max() < 1e-6
ones = np.broadcast_to(np.eye(3, dtype=complex), U.shape)
for spec in SPECS:
    s = smear.smear_links(U, spec)
    checks[spec + ' gives SU(3)'] = max(ref.su3_deviation(s)) < 1e-13
    checks[spec + ' is covariant'] = distance(smear.smear_links(ref.gauge_rotate(U, G), spec), ref.gauge_rotate(s, G)) < 1e-11
    checks[spec + ' keeps unit links'] = distance(smear.smear_links(ones, spec), ones) < 1e-14
    checks[spec + ' raises the plaquette'] = ref.plaquette(s) > ref.plaquette(U) + 0.05
HEX = 'hex:0.95,0.76,0.38,1'
s = smear.links_of(U, HEX)[0]
checks['hex gives SU(3)'] = max(ref.su3_deviation(s)) < 1e-13
checks['hex is covariant'] = distance(smear.links_of(ref.gauge_rotate(U, G), HEX)[0], ref.gauge_rotate(s, G)) < 1e-11
checks['hex keeps unit links'] = distance(smear.links_of(ones, HEX)[0], ones) < 1e-14
checks['hex raises the plaquette'] = ref.plaquette(s) > ref.plaquette(U) + 0.05
checks['hex without decoration is stout in all directions'] = distance(
    smear.links_of(U, 'hex:0.6,0,0,1')[0], smear.links_of(U, 'stout:0.1,1')[0]) < 1e-12
checks['spatial smearing keeps U_t'] = distance(smear.smear_links(U, 'ape:0.6,1')[3], U[3]) == 0
checks['hyp without decoration is ape'] = distance(smear.hyp(U, 0.7, 0, 0), smear.ape(U, 0.7, True)) < 1e-12
# Weak abelian plane waves, transverse: 1 - alpha p^2/n and 1 - rho p^2 with p^2 = 4 sum sin^2(p_nu/2).
X = np.indices(DIMS[::-1])[::-1]
P = 2 * np.pi * np.array([1 / 4, 0, 1 / 6, 1 / 4])
HAT = 2 * np.sin(P / 2)
for spec, factor in ('ape:0.5,1', 0.5 / 4), ('ape:0.5,1,4d', 0.5 / 6), ('stout:0.1,1', 0.1), ('stout:0.1,1,4d', 0.1):
    weak = np.zeros_like(U)
    hat = HAT if spec.endswith('4d') else HAT * [1, 1, 1, 0]
    for mu, size in (0, hat[2]), (2, -hat[0]):
        wave = 1e-6 * size * np.cos(np.tensordot(hat > 0, (P[:, None, None, None, None] * X), 1) + P[mu] / 2)
        for k in range(3):
            weak[mu, ..., k, k] = np.exp(1j * (1 - k) * wave)
    weak[1] = weak[3] = np.eye(3)
    before, after = (np.angle(w[0, ..., 0, 0]) for w in (weak, smear.smear_links(weak, spec)))
    ratio = (before * after).sum() / (before**2).sum()
    checks[spec + ' damps weak waves'] = abs(ratio - 1 + factor * (hat**2).sum()) < 1e-9
psi = RNG.normal(size=DIMS[::-1] + (4, 3, 2)) @ np.array([1, 1j])
rotated = np.einsum('...ab,...sb->...sa', G, psi)
checks['gauss is covariant'] = distance(smear.smear_source(ref.gauge_rotate(U, G), rotated, 'gauss:0.3,3'),
                                        np.einsum('...ab,...sb->...sa', G, smear.smear_source(U, psi, 'gauss:0.3,3'))) < 1e-13
for name, good in checks.items():
    print('%-45s %s' % (name, 'ok' if good else 'FAIL'))
sys.exit(0 if all(checks.values()) else 1)
