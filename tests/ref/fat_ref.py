"""Fat and long links of improved staggered fermions, path by path: the oracle of daemon/engine/gauge/fat/fat_links.h.

Links U[mu, t, z, y, x, a, b], without signs of staggered fermions and without boundary factors.
    fat_ref.py asqtad:U0|hisq:EPSILON|w|u3 XxYxZxT LINKS OUT
reads and writes files as smear_ref.py; OUT has fat, then long links of each site; w: the W of HISQ; u3: LINKS projected.
"""
import itertools
import os
import sys
import numpy as np
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ref_dirac import dag, shift  # noqa: E402


def walk(u, steps):
    """Product of the links along a path, for every site that it may begin at; a step is (direction, 1 or -1)."""
    at, out = [0, 0, 0, 0], np.eye(3)
    for mu, sign in steps:
        at[mu] -= sign < 0
        link = u[mu]
        for nu in range(4):
            link = shift(link, nu, at[nu]) if at[nu] else link
        out = out @ (link if sign > 0 else dag(link))
        at[mu] += sign > 0
    return out


def detours(mu, far):
    """Paths from x to x + mu that go away from the line by `far` steps in different directions, and back the same way."""
    for directions in itertools.permutations([nu for nu in range(4) if nu != mu], far):
        for signs in itertools.product((1, -1), repeat=far):
            away = list(zip(directions, signs))
            yield away + [(mu, 1)] + [(nu, -sign) for nu, sign in reversed(away)]


def straight(mu):
    """The same by two steps in one direction (G. P. Lepage)."""
    for nu in range(4):
        for sign in (1, -1):
            if nu != mu:
                yield [(nu, sign)] * 2 + [(mu, 1)] + [(nu, -sign)] * 2


def fat(u, c1, c3, c5, c7, c_straight):
    out = []
    for mu in range(4):
        f = c1 * u[mu]
        for c, paths in (c3, detours(mu, 1)), (c5, detours(mu, 2)), (c7, detours(mu, 3)), (c_straight, straight(mu)):
            if c:
                f = f + c * sum(walk(u, path) for path in paths)
        out.append(f)
    return np.stack(out)


def long(u, factor):
    return np.stack([factor * walk(u, [(mu, 1)] * 3) for mu in range(4)])


def nearest_u3(a):
    """A (A^+ A)^(-1/2), by singular values, which keeps all digits."""
    left, _, right = np.linalg.svd(a)
    return left @ right


def asqtad(u, u0):
    """(fat, long): K. Orginos, D. Toussaint, R. Sugar, hep-lat/9903032."""
    return (fat(u, 5 / 8, 1 / 16 / u0**2, 1 / 64 / u0**4, 1 / 384 / u0**6, -1 / 16 / u0**4), long(u, -1 / 24 / u0**2))


def reunitarised(u):
    """W of HISQ: fat7 links, projected to U(3)."""
    return nearest_u3(fat(u, 1 / 8, 1 / 16, 1 / 64, 1 / 384, 0))


def hisq(u, epsilon):
    """(fat, long): E. Follana et al., hep-lat/0610092."""
    w = reunitarised(u)
    return fat(w, 1 + epsilon / 8, 1 / 16, 1 / 64, 1 / 384, -1 / 8), long(w, -(1 + epsilon) / 24)


def main(argv):
    spec, dims, links, target = argv
    u = np.moveaxis(np.fromfile(links, '<c16').reshape(tuple(map(int, dims.split('x')))[::-1] + (4, 3, 3)), 4, 0)
    kind, _, number = spec.partition(':')
    if kind in ('w', 'u3'):
        out = np.moveaxis({'w': reunitarised, 'u3': nearest_u3}[kind](u), 0, 4)
    else:
        out = np.moveaxis(np.stack({'asqtad': asqtad, 'hisq': hisq}[kind](u, float(number))), (0, 1), (4, 5))
    np.ascontiguousarray(out).astype('<c16').tofile(target)


if __name__ == '__main__':
    main(sys.argv[1:])
