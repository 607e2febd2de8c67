"""Multigrid is the same on every grid of ranks that carries it, and so are its checkpoints: mg_file.py PROGRAM GAUGE GRID...

PROGRAM is mg_file_ranks. A hierarchy has the aggregates of the whole lattice, and random vectors by global site. Sums over sites are in double, so
grids differ by the order of them alone, which changes few of the numbers in single that follow from them: the tolerances here are the rounding of single.
Iterations are counted, and equal.
"""
import math
import os
import subprocess
import sys
import tempfile

import tap

PROGRAM, GAUGE, GRIDS = sys.argv[1], sys.argv[2], sys.argv[3:]
ONE = '1x1x1x1'
SINGLE = 1e-5  # some hundred roundings, of a relaxation that ends after 20 steps
FIGURES = '|M v| of level 0', '|M v| of level 1', 'lowest singular value', 'convergence'


def size(grid):
    return math.prod(map(int, grid.split('x')))


def run(mode, path, grid):
    """Null residuals, deviations, lowest singular value and convergence, as the program prints them; iterations of a solve."""
    words = ['mpirun', '-np', str(size(grid)), PROGRAM, mode, path, GAUGE] + grid.split('x')
    out = subprocess.run(words, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout.split()
    return [float(word) for word in out[:6]], int(out[6])


def path_of(folder, grid):
    return os.path.join(folder, grid + '.mg')


def is_the_hierarchy(got, want, where):
    (a, n), (b, m) = got, want
    for what, x, y in zip(FIGURES, a[:2] + a[4:], b[:2] + b[4:]):
        assert abs(x / y - 1) < SINGLE, '%s: %s is %.9g, %.9g on one rank' % (where, what, x, y)
    assert a[2] < 2e-2 and a[3] < 2e-2, '%s: deviations %s' % (where, a[2:4])
    assert n == m, '%s: %d iterations, %d on one rank' % (where, n, m)


def is_set_up_alike(grid):
    def function(folder, one):
        is_the_hierarchy(run('save', path_of(folder, grid), grid), one['save'], grid)
    function.__name__ = 'is_set_up_alike_on_' + grid
    return function


def a_checkpoint_of_one_rank_is_read(grid):
    def function(folder, one):
        is_the_hierarchy(run('load', path_of(folder, ONE), grid), one['load'], grid)
    function.__name__ = 'a_checkpoint_of_one_rank_is_read_by_' + grid
    return function


def a_checkpoint_is_read_by_one_rank(grid):
    def function(folder, one):
        is_the_hierarchy(run('load', path_of(folder, grid), ONE), one['load'], grid)
    function.__name__ = 'a_checkpoint_of_%s_is_read_by_one_rank' % grid
    return function


for g in GRIDS:
    tap.test(is_set_up_alike(g))
for g in {size(g): g for g in GRIDS}.values():  # one of each size
    tap.test(a_checkpoint_of_one_rank_is_read(g))
    tap.test(a_checkpoint_is_read_by_one_rank(g))
with tempfile.TemporaryDirectory() as scratch:
    first = path_of(scratch, ONE)
    tap.run(scratch, {'save': run('save', first, ONE), 'load': run('load', first, ONE)})
