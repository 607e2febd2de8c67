"""A checkpoint of multigrid written on one grid of ranks and read on others: mg_file.py MG_FILE_RANKS_PROGRAM"""
import math
import os
import subprocess
import sys
import tempfile

import tap

PROGRAM = sys.argv[1]
READ = {'1x1x1x1': ['1x1x1x1', '2x1x1x1', '2x1x1x2'], '2x1x1x1': ['1x1x1x1', '1x1x1x2']}  # by where it was written


def run(mode, path, grid):
    """Null residuals, deviations and iterations, as the program prints them."""
    extents = grid.split('x')
    words = ['mpirun', '-np', str(math.prod(map(int, extents))), PROGRAM, mode, path] + extents
    out = subprocess.run(words, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    return [float(word) for word in out.split()]


def is_read_on_other_grids_than(grid):
    def function(folder):
        path = os.path.join(folder, 'setup.mg')
        made = run('save', path, grid)
        read = {g: run('load', path, g) for g in READ[grid]}
        first = read[READ[grid][0]]
        for g, now in read.items():
            for level in range(2):
                off = abs(now[level] / first[level] - 1)
                assert off < 1e-3, 'null vectors of level %d on %s: |M v| / |v| off by %.1e' % (level, g, off)
            assert now[2] < 2e-2 and now[3] < 2e-2, 'deviations on %s: %s' % (g, now[2:4])
            assert abs(now[4] - made[4]) <= 1, '%s: %d iterations, %d with the setup itself' % (g, now[4], made[4])
        os.unlink(path)
        assert os.listdir(folder) == []
    function.__name__ = 'is_read_on_other_grids_than_' + grid
    return function


for g in READ:
    tap.test(is_read_on_other_grids_than(g))
with tempfile.TemporaryDirectory() as scratch:
    tap.run(scratch)
