"""The 16 products of gamma matrices by number and by quarkctl's names, in the DeGrand-Rossi basis.

Number n = b0 + 2 b1 + 4 b2 + 8 b3 is gx^b0 gy^b1 gz^b2 gt^b3: 0 is 1 ("id"), 15 is gamma5 ("g5"), 9 is "gxgt".
"""
from __future__ import annotations

from typing import Tuple, Union

import numpy as np
from numpy.typing import NDArray

Gamma = Union[int, str]


def _directions() -> NDArray[np.complex128]:
    upper = np.array([[[0, 1j], [1j, 0]], [[0, -1], [1, 0]], [[1j, 0], [0, -1j]], [[1, 0], [0, 1]]])
    g = np.zeros((4, 4, 4), complex)
    g[:, :2, 2:], g[:, 2:, :2] = upper, upper.conj().swapaxes(1, 2)
    g.flags.writeable = False
    return g


DIRECTIONS = _directions()


def name(n: int) -> str:
    """
    >>> [name(n) for n in (0, 1, 9, 15)]
    ['id', 'gx', 'gxgt', 'g5']
    """
    if not 0 <= n < 16:
        raise ValueError('gamma matrix %r: must be 0 to 15' % (n,))
    return {0: 'id', 15: 'g5'}.get(n) or ''.join('g' + 'xyzt'[mu] for mu in range(4) if n >> mu & 1)


NAMES: Tuple[str, ...] = tuple(name(n) for n in range(16))


def number(gamma: Gamma) -> int:
    """The number of a name or number. Errors: ValueError.

    >>> number('g5'), number('gxgt'), number(3), number('3')
    (15, 9, 3, 3)
    """
    if isinstance(gamma, str) and gamma in NAMES:
        return NAMES.index(gamma)
    if isinstance(gamma, str) and gamma.isascii() and gamma.isdigit() and str(int(gamma)) == gamma and int(gamma) < 16:
        return int(gamma)
    if not isinstance(gamma, str) and 0 <= gamma < 16 and gamma == int(gamma):
        return int(gamma)
    raise ValueError('gamma matrix %r: must be id, g5, a product such as gxgt, or 0 to 15' % (gamma,))


def matrix(gamma: Gamma) -> NDArray[np.complex128]:
    """The 4 x 4 matrix.

    >>> matrix('g5').diagonal().real
    array([ 1.,  1., -1., -1.])
    """
    n, g = number(gamma), np.eye(4, dtype=complex)
    for mu in range(4):
        if n >> mu & 1:
            g = g @ DIRECTIONS[mu]
    return g
