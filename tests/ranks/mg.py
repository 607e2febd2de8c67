"""Coarse operators and prolongators are the same on every grid of ranks: mg.py MG_RANKS GAUGE GRID...

Numbers of matrices that stand on given vectors differ by rounding in single; what multigrid of relaxed vectors gains
differs by the roundings of their relaxation.
"""
import math
import subprocess
import sys

import tap

PROGRAM, GAUGE, GRIDS = sys.argv[1], sys.argv[2], sys.argv[3:]


def numbers(grid):
    extents = grid.split('x')
    run = subprocess.run(['mpirun', '-np', str(math.prod(map(int, extents))), PROGRAM, GAUGE, *extents],
                         stdout=subprocess.PIPE, check=True, text=True)
    return {name: float(value) for name, value in map(str.split, run.stdout.splitlines())}


def compare_with(grid):
    def function(one):
        got = numbers(grid)
        assert got.keys() == one.keys() and len(one) > 20
        for name, want in one.items():
            prefix = 'twisted_' if name.startswith('twisted_') else ''
            what = name[len(prefix):]
            if what == 'convergence':
                assert abs(got[name] - want) < 0.05, '%s: %g on %s, %g on one rank' % (name, got[name], grid, want)
            elif what.startswith('iterations'):
                assert abs(got[name] - want) <= 1, '%s: %g on %s, %g on one rank' % (name, got[name], grid, want)
            else:
                level = name.rsplit('_', 1)[1]
                size = abs(one[prefix + 'norm_M_' + level]) if what.startswith('dot_M') else abs(want)
                assert abs(got[name] - want) < 2e-5 * size, '%s: %.9g on %s, %.9g on one rank' % (
                    name, got[name], grid, want)
    function.__name__ = 'agrees_on_' + grid
    return function


for g in GRIDS:
    tap.test(compare_with(g))
tap.run(numbers('1x1x1x1'))
