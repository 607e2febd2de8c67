"""Links with an open boundary in t, and the openQCD file of them, as openQCD writes it."""
import struct

import numpy as np

import ref_dirac as ref


def opened(links, sites=None):
    """U_t = 0 on the last time slice; sites: on so many of its sites only."""
    links = links.copy()
    links[3, -1].reshape(-1, 3, 3)[:sites] = 0
    return links


def write_openqcd(path, links):
    """Header: T, X, Y, Z and the sum of Re tr of all plaquettes that are there, over 6 V."""
    u = links.transpose(0, 1, 4, 3, 2, 5, 6)[[3, 0, 1, 2]]  # mu = t, x, y, z; sites t, x, y, z
    n = u.shape[1:5]
    c = np.indices(n).reshape(4, -1)
    odd = c[:, c.sum(0) % 2 == 1]
    data = np.empty((odd.shape[1], 8, 3, 3), '<c16')
    for mu in range(4):
        back = odd.copy()
        back[mu] = (back[mu] - 1) % n[mu]
        data[:, 2 * mu], data[:, 2 * mu + 1] = u[(mu,) + tuple(odd)], u[(mu,) + tuple(back)]
    with open(path, 'wb') as f:
        f.write(struct.pack('<4id', *n, 3 * ref.plaquette(links)))
        f.write(data.tobytes())
