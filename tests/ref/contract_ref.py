"""Hadron correlators by their definitions: the operators written out, every Wick contraction, every colour.

A propagator is S[t,z,y,x, s,c, s',c'] = <q(x) qbar(x0)>, DeGrand-Rossi spins at both ends (ref_dirac).

  phase       exp(-i 2 pi sum_j p_j (x_j - x0_j) / L_j), j = x, y, z; t counts from x0_t modulo T
  meson       sum_x phase tr[g5 S_b^+ g5 G_A S_a G_B]
  baryons     B_g = eps_abc (q_a^T G q_b) q_c,  Bbar = B^+ g_t,  qbar = q^+ g_t;  sum_x phase <B_g(x) Bbar_g'(x0)>
              nucleon: u, d, u with G = C g_5;  Delta_i: u, u, u with G = C g_i, i = x, y, z
              C = g_t g_y, so that C g_mu C^-1 = -g_mu^T

Run it to write random propagators and their correlators to files, for tests in C (--help).
"""
import argparse
import itertools
import os
import sys
import numpy as np
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ref_dirac as ref

G5, GT = ref.GAMMA5, ref.GAMMA[3]
C = ref.GAMMA[3] @ ref.GAMMA[1]
PERMUTATIONS = [(p, round(np.linalg.det(np.eye(3)[list(p)]))) for p in itertools.permutations(range(3))]


def gamma(n):
    """gx^b0 gy^b1 gz^b2 gt^b3 for n = b0 + 2 b1 + 4 b2 + 8 b3."""
    g = np.eye(4, dtype=complex)
    for mu in range(4):
        if n >> mu & 1:
            g = g @ ref.GAMMA[mu]
    return g


def phases(lat, momentum, origin):
    """[z,y,x]; lat = (t,z,y,x), momentum = (px,py,pz), origin = (x,y,z,t)."""
    z, y, x = np.indices(lat[1:])
    turns = sum(p * (c - o) / n for p, c, o, n in zip(momentum, (x, y, z), origin, lat[:0:-1]))
    return np.exp(-2j * np.pi * turns)


def project(density, momenta, origin):
    """density[t,z,y,x, ...] -> [momentum, t - t0, ...]"""
    lat = density.shape[:4]
    return np.array([np.roll(np.einsum('zyx,tzyx...->t...', phases(lat, p, origin), density), -origin[3], axis=0)
                     for p in momenta])


def meson(a, b, sink, source, momenta, origin):
    """[momentum, t]"""
    b_dagger = np.conj(np.moveaxis(b, (4, 5, 6, 7), (6, 7, 4, 5)))
    d = np.einsum('ij,...jakb,kl,lm,...mbna,ni->...', G5, b_dagger, G5, gamma(sink), a, gamma(source), optimize='greedy')
    return project(d, momenta, origin)


def mesons(a, b, momenta, origin):
    """All pairs: [momentum, t, sink, source]"""
    b_dagger = np.conj(np.moveaxis(b, (4, 5, 6, 7), (6, 7, 4, 5)))
    g = np.array([gamma(n) for n in range(16)])
    spin = project(np.einsum('ij,...jakb,kl,...mbna->...ilmn', G5, b_dagger, G5, a, optimize='greedy'), momenta, origin)
    return np.einsum('ptilmn,Alm,Bni->ptAB', spin, g, g, optimize='greedy')


def baryon(quarks, first, second, momenta, origin):
    """<B Bbar> of three quarks in the order of the operator; two quarks contract where they are the same object.
    first[i], second[j]: the spin matrices G at x and at x0. [momentum, t, i, j, g, g']"""
    # <q q^+> for the two source quarks of the diquark, and for the third (q^+ g_t) g_t = qbar
    legs = [[np.einsum('...satb,tu->...saub', q, GT) if slot < 2 else q for slot in range(3)] for q in quarks]
    total = 0
    # q1 q2 q3 (q1 q2 q3)^+ = q1 q2 q3 q3^+ q2^+ q1^+: contracting k with k has no crossing, others the sign of the order
    for order, sign in PERMUTATIONS:
        if any(quarks[k] is not quarks[order[k]] for k in range(3)):
            continue
        spins = ['ad', 'be', 'gf']
        pairs = [spins[k][0] + spins[order[k]][1] for k in range(3)]
        for (c, eps), (d, eps2) in itertools.product(PERMUTATIONS, PERMUTATIONS):
            factors = [legs[k][order[k]][..., c[k], :, d[order[k]]] for k in range(3)]
            total = total + sign * eps * eps2 * np.einsum(
                '...%s,...%s,...%s,iab,jde->...ijgf' % tuple(pairs), *factors, first, np.conj(second), optimize='greedy')
    return project(total, momenta, origin)


def nucleon(u, d, momenta, origin):
    """[momentum, t, g, g']"""
    g = (C @ G5)[None]
    return baryon([u, d, u], g, g, momenta, origin)[:, :, 0, 0]


def delta(u, momenta, origin):
    """[momentum, t, i, j, g, g']"""
    g = np.array([C @ ref.GAMMA[i] for i in range(3)])
    return baryon([u, u, u], g, g, momenta, origin)


def random_propagator(rng, lat):
    return rng.normal(size=lat + (4, 3, 4, 3, 2)) @ np.array([1, 1j])


def main(argv):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--dims', default='4x6x2x8', help='XxYxZxT')
    p.add_argument('--momenta', default='0,0,0', help='px,py,pz;...')
    p.add_argument('--origin', default='0,0,0,0', help='x,y,z,t')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('out', help='folder for a.bin, b.bin [column][t][z][y][x][spin][colour] and the correlators')
    a = p.parse_args(argv)
    lat = tuple(int(n) for n in a.dims.split('x'))[::-1]
    momenta = [tuple(map(int, m.split(','))) for m in a.momenta.split(';')]
    origin = tuple(map(int, a.origin.split(',')))
    rng = np.random.default_rng(a.seed)
    s, r = random_propagator(rng, lat), random_propagator(rng, lat)
    out = {name: np.moveaxis(v.reshape(lat + (4, 3, 12)), -1, 0) for name, v in (('a', s), ('b', r))}
    out['mesons_ab'] = mesons(s, r, momenta, origin)
    out['mesons_aa'] = mesons(s, s, momenta, origin)
    out['nucleon_ab'] = nucleon(s, r, momenta, origin)
    out['nucleon_aa'] = nucleon(s, s.copy(), momenta, origin)
    out['delta'] = delta(s, momenta, origin)
    os.makedirs(a.out, exist_ok=True)
    for name, v in out.items():
        np.ascontiguousarray(v).astype('<c16').tofile(os.path.join(a.out, name + '.bin'))


if __name__ == '__main__':
    main(sys.argv[1:])
