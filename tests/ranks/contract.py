"""Correlators on grids of ranks against the oracle: contract.py CONTRACT_RANKS_PROGRAM

Propagators of random numbers, so that every site counts; several momenta; a source that is on the last rank.
"""
import math
import os
import subprocess
import sys
import tempfile
import numpy as np

import contract_ref
import tap

PROGRAM = sys.argv[1]
DIMS, ORIGIN, MOMENTA = (8, 4, 4, 8), (5, 3, 2, 6), [(0, 0, 0), (1, -2, 1), (0, 3, -1), (-1, 0, 2), (2, 1, 0)]
GRIDS = ['1x1x1x1', '1x1x1x2', '2x1x1x1', '2x1x1x2']


def numbers(folder, name):
    return np.fromfile(os.path.join(folder, name), '<c16')


class Oracle:
    """The propagators' files, and their correlators in the order of the program."""

    def __init__(self, folder):
        self.folder = folder
        words = ['--dims', 'x'.join(map(str, DIMS)), '--origin', ','.join(map(str, ORIGIN)),
                 '--momenta=' + ';'.join(','.join(map(str, p)) for p in MOMENTA), folder]
        contract_ref.main(words)
        mesons = numbers(folder, 'mesons_ab.bin').reshape(len(MOMENTA) * DIMS[3], 256)
        self.want = {'mesons': mesons.T.ravel(), 'nucleon': numbers(folder, 'nucleon_ab.bin'),
                     'delta': numbers(folder, 'delta.bin')}


def agrees_on(grid):
    def function(oracle):
        extents = grid.split('x')
        words = ['mpirun', '-np', str(math.prod(map(int, extents))), PROGRAM, oracle.folder, 'x'.join(map(str, DIMS))]
        subprocess.run(words + extents + [str(n) for p in [ORIGIN] + MOMENTA for n in p], check=True)
        got, at = numbers(oracle.folder, 'out.bin'), 0
        assert got.size == sum(w.size for w in oracle.want.values())
        for name, want in oracle.want.items():
            off = np.abs(got[at:at + want.size] - want).max() / np.abs(want).max()
            assert off < 1e-12, '%s on %s: off by %.1e' % (name, grid, off)
            at += want.size
    function.__name__ = 'agrees_with_the_oracle_on_' + grid
    return function


for g in GRIDS:
    tap.test(agrees_on(g))
with tempfile.TemporaryDirectory() as scratch:
    tap.run(Oracle(scratch))
