"""Links and vectors for tests in C: make_vectors.py [options] OUT

Writes into the folder OUT, all complex double, little endian, x fastest of the site coordinates:
  links.bin     [t][z][y][x][mu][3][3]     psi.bin         [t][z][y][x][spin][colour], random
  M_psi.bin     M psi                      Mdagger_psi.bin M^+ psi
  x.bin         M^-1 psi (with --solve)    vectors.json    parameters, |M psi|^2, plaquette
The links are those of a gauge file (--gauge), or random SU(3) matrices at some distance from one.
"""
import argparse
import json
import os
import sys
import numpy as np
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ref_dirac as ref


def random_links(rng, dims, roughness):
    """SU(3) links, at roughness 0 all one, at 1 without any preference."""
    z = rng.normal(size=(4,) + dims[::-1] + (3, 3, 2)) @ np.array([1, 1j])
    return ref.reunitarise((1 - roughness) * np.eye(3) + roughness * ref.reunitarise(z))


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--gauge', help='gauge file; else random links')
    p.add_argument('--dims', default='4x6x8x10', help='XxYxZxT of random links')
    p.add_argument('--roughness', type=float, default=0.4, help='of random links, 0 to 1')
    p.add_argument('--mass', type=float, default=0.1)
    p.add_argument('--csw', type=float, default=1.2)
    p.add_argument('--boundary', default='1,1,1,-1', help='phase per direction x,y,z,t, as Python complex')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--solve', action='store_true')
    p.add_argument('out')
    return p.parse_args(argv)


def main(argv):
    a = parse(argv)
    rng = np.random.default_rng(a.seed)
    boundary = [complex(s) for s in a.boundary.split(',')]
    u = ref.load_any(a.gauge)[0] if a.gauge else random_links(rng, tuple(map(int, a.dims.split('x'))), a.roughness)
    op = ref.WilsonClover(u, a.mass, a.csw, boundary)
    psi = rng.normal(size=op.shape + (2,)) @ np.array([1, 1j])
    out = {'links': np.moveaxis(u, 0, 4), 'psi': psi, 'M_psi': op.apply(psi), 'Mdagger_psi': op.apply_dagger(psi)}
    facts = {'dims': list(op.shape[3::-1]), 'mass': a.mass, 'csw': a.csw,
             'boundary': [[b.real, b.imag] for b in boundary], 'plaquette': ref.plaquette(u),
             'norm2_M_psi': float(np.vdot(out['M_psi'], out['M_psi']).real)}
    if a.solve:
        out['x'], facts['residual'], _ = ref.solve(op, psi)
    os.makedirs(a.out, exist_ok=True)
    for name, v in out.items():
        np.ascontiguousarray(v).astype('<c16').tofile(os.path.join(a.out, name + '.bin'))
    with open(os.path.join(a.out, 'vectors.json'), 'w') as f:
        json.dump(facts, f, indent=1)


if __name__ == '__main__':
    main(sys.argv[1:])
