"""Correlators of free Wilson quarks: exact sums over momenta, written to files for tests in C (--help).

On unit links, antiperiodic in t, S(k) = (m + sum_mu (1 - cos k_mu) + i sum_mu g_mu sin k_mu)^-1 with k_j = 2 pi n_j / L_j
and k_t = 2 pi (n_t + 1/2) / T, times one in colour; the clover term vanishes. In the time-momentum representation
S(k, t) = 1/T sum_kt e^{i k_t t} S(k),

  C_AB(p, t) = 3 / L^3 sum_k tr[g5 S_b(k, t)^+ g5 G_A S_a(k + p, t) G_B].

Baryons come from contract_ref, out of S(x) = 1/L^3 sum_k e^{i k x} S(k, t).
"""
import argparse
import os
import sys
import numpy as np
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import contract_ref
import ref_dirac as ref


def time_momentum(dims, mass):
    """S[nx,ny,nz,t,4,4] for dims = (Lx,Ly,Lz,T)."""
    n = np.indices(dims).astype(float)
    n[3] += 0.5
    k = 2 * np.pi * n / np.array(dims).reshape(4, 1, 1, 1, 1)
    scalar = mass + (1 - np.cos(k)).sum(axis=0)
    s = np.linalg.inv(scalar[..., None, None] * np.eye(4) + 1j * np.einsum('mxyzt,mab->xyztab', np.sin(k), ref.GAMMA))
    wave = np.exp(1j * np.outer(k[3, 0, 0, 0], np.arange(dims[3]))) / dims[3]
    return np.einsum('xyzkab,kt->xyztab', s, wave)


def mesons(a, b, dims, momenta):
    """[momentum, t, sink, source]"""
    g = np.array([contract_ref.gamma(n) for n in range(16)])
    out = []
    for p in momenta:
        ahead = np.roll(a, [-n for n in p], axis=(0, 1, 2))
        line = np.einsum('ij,xyztkj,kl->xyztil', ref.GAMMA5, b.conj(), ref.GAMMA5)       # g5 S_b^+ g5
        spin = np.einsum('xyztil,xyztmn->tilmn', line, ahead) * 3 / np.prod(dims[:3])
        out.append(np.einsum('tilmn,Alm,Bni->tAB', spin, g, g, optimize='greedy'))
    return np.array(out)


def position(s, dims):
    """S[t,z,y,x, s,c, s',c'] of a source at the origin."""
    x = np.fft.ifftn(s, axes=(0, 1, 2)).transpose(3, 2, 1, 0, 4, 5)
    return np.einsum('tzyxab,cd->tzyxacbd', x, np.eye(3))


def main(argv):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--dims', default='6x4x8x8', help='XxYxZxT')
    p.add_argument('--mass', type=float, nargs=2, default=(0.2, 0.5), help='of quarks a and b')
    p.add_argument('--momenta', default='0,0,0', help='px,py,pz;...')
    p.add_argument('out', help='folder')
    a = p.parse_args(argv)
    dims = tuple(map(int, a.dims.split('x')))
    momenta = [tuple(map(int, m.split(','))) for m in a.momenta.split(';')]
    first, second = (time_momentum(dims, m) for m in a.mass)
    u, d = position(first, dims), position(second, dims)
    out = {'mesons': mesons(first, second, dims, momenta), 'nucleon': contract_ref.nucleon(u, d, momenta, (0, 0, 0, 0)),
           'delta': contract_ref.delta(u, momenta, (0, 0, 0, 0))}
    os.makedirs(a.out, exist_ok=True)
    for name, v in out.items():
        np.ascontiguousarray(v).astype('<c16').tofile(os.path.join(a.out, name + '.bin'))


if __name__ == '__main__':
    main(sys.argv[1:])
