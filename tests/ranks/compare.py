"""The same numbers on every grid of ranks: compare.py RANKS_PROGRAM GAUGE GRID...

Runs the program (tests/accuracy/ranks.c) on one rank and on each GRID (as 1x1x2x2), and compares what it
prints. Applied vectors and smeared links and sources differ by rounding alone; solutions are converged to 1e-12 on each grid.
"""
import math
import subprocess
import sys

import tap

PROGRAM, GAUGE, GRIDS = sys.argv[1], sys.argv[2], sys.argv[3:]


def numbers(grid):
    """[(name, value)] in the order printed."""
    extents = grid.split('x')
    count = math.prod(map(int, extents))
    run = subprocess.run(['mpirun', '-np', str(count), PROGRAM, GAUGE, *extents], stdout=subprocess.PIPE, check=True,
                         text=True)
    lines = [line.split() for line in run.stdout.splitlines()]
    return [(name, float(value)) for name, value in lines]


def compare_with(grid):
    def function(one):
        got = numbers(grid)
        assert [name for name, _ in got] == [name for name, _ in one] and len(one) > 10
        scale = dict(one)['norm2_M']
        for (name, value), (_, want) in zip(got, one):
            bound = 1e-13 * scale
            if name.startswith('norm2_x'):
                bound = 1e-11 * abs(want)
            elif 'gauss' in name:
                bound = 1e-12 * abs(want)
            elif name.startswith('plane'):
                bound = 1e-13
            assert abs(value - want) <= bound, '%s: %.17g on %s, %.17g on one rank' % (name, value, grid, want)
    function.__name__ = 'agrees_on_' + grid
    return function


for g in GRIDS:
    tap.test(compare_with(g))
tap.run(numbers('1x1x1x1'))
