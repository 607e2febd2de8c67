#!/usr/bin/env python3
"""Which action do these configurations belong to?

For links U with weight exp(-S), S = -(1/3) sum_k b_k Re tr (U A_k) where it depends on U (A_k: the sum of the plaquette
or of the rectangle staples), invariance of the Haar measure gives the exact equations

    4 <Re tr W_k> = sum_l b_l <sum_a Im tr(T^a W_k) Im tr(T^a W_l)>,    W_k = U A_k,  k, l = plaquette, rectangle,

with tr T^a T^b = delta_ab / 2. Averages over the configurations therefore say what b_plaquette = beta (1 - 8 c1) and
b_rectangle = beta c1 are, whatever program made them (A. Gonzalez-Arroyo, M. Okawa, Phys. Rev. D 35 (1987) 672;
P. de Forcrand et al., hep-lat/9806008).

    couplings.py FILE...        gauge files of one ensemble, of any format that tests/ref reads; at least three
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'ref'))
import ref_dirac as ref  # noqa: E402
import stats  # noqa: E402


def path_product(u, start, steps):
    """Product of links from n + start to its end along signed steps (mu, +-1), as a field of n."""
    at, out = np.array(start), None

    def link(mu, where):
        field = u[mu]
        for d in range(4):
            for _ in range(abs(where[d])):
                field = ref.shift(field, d, 1 if where[d] > 0 else -1)
        return field

    for mu, sign in steps:
        hop = np.eye(4, dtype=int)[mu]
        factor = link(mu, at) if sign > 0 else ref.dag(link(mu, at - hop))
        at = at + sign * hop
        out = factor if out is None else out @ factor
    return out


def staples(u, mu):
    """(plaquette, rectangle) staples of the links U_mu(n): tr U A is the sum of the traces of the loops through U."""
    forth, back = (mu, 1), (mu, -1)
    plaquette = rectangle = 0
    start = np.eye(4, dtype=int)[mu]
    for nu in range(4):
        for s in (1, -1):
            if nu == mu:
                continue
            up, down = (nu, s), (nu, -s)
            plaquette = plaquette + path_product(u, start, [up, back, down])
            for steps in ([up, up, back, down, down], [forth, up, back, back, down], [up, back, back, down, forth]):
                rectangle = rectangle + path_product(u, start, steps)
    return plaquette, rectangle


def inner(v, w):
    """Sum over sites of sum_a Im tr(T^a V) Im tr(T^a W)."""
    hv, hw = (v - ref.dag(v)) / 2j, (w - ref.dag(w)) / 2j
    trace = [np.trace(h, axis1=-2, axis2=-1) for h in (hv, hw)]
    return 0.5 * float(((hv * np.swapaxes(hw, -1, -2)).sum() - (trace[0] * trace[1]).sum() / 3).real)


def equations(u):
    """Averages over the links of one configuration: (<Re tr W_k>, matrix of the right-hand side), and the mean traces
    / 3 of plaquettes and rectangles."""
    left, matrix, links = np.zeros(2), np.zeros((2, 2)), 4 * u[0, ..., 0, 0].size
    for mu in range(4):
        w = [u[mu] @ a for a in staples(u, mu)]
        left += [np.trace(x, axis1=-2, axis2=-1).real.sum() for x in w]
        matrix += [[inner(x, y) for y in w] for x in w]
    return left / links, matrix / links, left / links / [18, 54]


def solve(left, matrix):
    """(beta, c1)"""
    b = np.linalg.solve(matrix, 4 * left)
    return np.array([b[0] + 8 * b[1], b[1] / (b[0] + 8 * b[1])])


def solve_beta(left, matrix, c1):
    """beta where c1 is known, from the equation of c0 W_plaquette + c1 W_rectangle."""
    v = np.array([1 - 8 * c1, c1])
    return 4 * (v @ left) / (v @ matrix @ v)


def measure(configurations, solution):
    """Arrays (value, error) of solution(left, matrix), from three configurations or more."""
    each = [equations(u)[:2] for u in configurations]
    left, matrix = np.array([e[0] for e in each]), np.array([e[1] for e in each])
    samples = [solution(a, m) for a, m in zip(stats.jackknife_samples(left), stats.jackknife_samples(matrix))]
    return solution(left.mean(axis=0), matrix.mean(axis=0)), stats.jackknife_error(samples)


def both(c1):
    """Solution for measure: beta at this c1, and c1 where beta is free, too."""
    return lambda left, matrix: np.array([solve_beta(left, matrix, c1), solve(left, matrix)[1]])


def main(files):
    if len(files) < 3:
        sys.exit('couplings.py needs three configurations or more of one ensemble')
    value, error = measure((ref.load_any(f)[0] for f in files), solve)
    print('beta = %s\nc1   = %s' % (stats.text(value[0], error[0]), stats.text(value[1], error[1])))


if __name__ == '__main__':
    main(sys.argv[1:])
