"""Landau and Coulomb gauge, by definition, of links [mu][t][z][y][x][3][3].

  A_mu = (U_mu - U_mu^+) without its trace
  F = mean of Re tr U_mu / 3 over sites and directions mu < n, n = 4 (Landau) or 3 (Coulomb)
  theta(t) = 1/3 of the mean over the sites of time slice t of tr D D^+,  D(x) = sum_{mu < n} [A_mu(x) - A_mu(x - mu)]
"""
import os
import sys
import numpy as np
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ref_dirac import dag, shift  # noqa: E402

DIRECTIONS = {'landau': 4, 'coulomb': 3}


def functional(u, gauge):
    return float(np.trace(u[:DIRECTIONS[gauge]], axis1=-2, axis2=-1).real.mean() / 3)


def divergence(u, gauge):
    d = 0
    for mu in range(DIRECTIONS[gauge]):
        a = u[mu] - dag(u[mu])
        a = a - np.trace(a, axis1=-2, axis2=-1)[..., None, None] / 3 * np.eye(3)
        d = d + a - shift(a, mu, -1)
    return d


def theta_of_slices(u, gauge):
    return (np.abs(divergence(u, gauge))**2).sum((-2, -1)).mean((1, 2, 3)) / 3


def theta(u, gauge):
    """What quark-gauge fix compares with its tolerance."""
    slices = theta_of_slices(u, gauge)
    return float(slices.mean() if gauge == 'landau' else slices.max())
