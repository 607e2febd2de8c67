"""A coarsest level that every rank has whole: whole.py WHOLE_RANKS GAUGE GRID...

The iterations are those of one rank and of a level that is cut; nothing is exchanged or summed there; all ranks have the same bits of it; and
peer memory and messages give the same bits of the solutions.
"""
import functools
import math
import os
import subprocess
import sys

import tap

PROGRAM, GAUGE, GRIDS = sys.argv[1], sys.argv[2], sys.argv[3:]
ONE = '1x1x1x1'


@functools.lru_cache(None)
def numbers(grid, transport):
    extents = grid.split('x')
    ranks = math.prod(map(int, extents))
    kinds = 'both' if transport == 'peer' else 'whole'
    run = subprocess.run(['mpirun', '-np', str(ranks), PROGRAM, kinds, GAUGE, *extents], stdout=subprocess.PIPE, check=True, text=True,
                         env={**os.environ, 'QK_TRANSPORT': transport if ranks > 1 else 'auto'})
    return {name: float(value) for name, value in map(str.split, run.stdout.splitlines())}


def takes_the_iterations_of_one_rank(grid):
    def function():
        one, got = numbers(ONE, 'auto'), numbers(grid, 'peer')
        for kind in 'whole', 'cut':
            assert got[kind + '_iterations'] == one['whole_iterations'], (kind, got, one)
            assert got[kind + '_residual'] < 2e-10, (kind, got)
    function.__name__ = 'takes_the_iterations_of_one_rank_on_' + grid
    return function


def has_no_exchange_and_no_sum_there(grid):
    def function():
        got = numbers(grid, 'peer')
        assert got['cut_faces_level2'] > 20, got
        assert got['whole_faces_level2'] == 0, got
        # what is left of waits: all but those of level 2, and one for each time that it is given something
        given = got['whole_awaits'] - (got['cut_awaits'] - got['cut_faces_level2'])
        assert 1 <= given <= 8, got
        assert got['cut_sums'] - got['whole_sums'] >= 9 * given, got  # eight steps and a deflation
        print('# %s: exchanges and sums of a cycle: %d and %d, cut on all levels %d and %d' % (
            grid, got['whole_awaits'], got['whole_sums'], got['cut_awaits'], got['cut_sums']))
    function.__name__ = 'has_no_exchange_and_no_sum_on_level_2_on_' + grid
    return function


def has_the_same_bits_on_all_ranks(grid):
    def function():
        for transport in 'peer', 'staged':
            got = numbers(grid, transport)
            assert got['whole_same_b'] == got['whole_same_e'] == got['whole_same_vectors'] == 1, (transport, got)
        assert numbers(grid, 'peer')['whole_sites'] > numbers(grid, 'peer')['cut_sites']
    function.__name__ = 'has_the_same_bits_on_all_ranks_of_' + grid
    return function


def gives_the_same_bits_by_memory_and_by_messages(grid):
    def function():
        peer, staged = numbers(grid, 'peer'), numbers(grid, 'staged')
        assert peer['whole_bits'] == staged['whole_bits'], (peer, staged)
        assert peer['whole_iterations'] == staged['whole_iterations'], (peer, staged)
    function.__name__ = 'gives_the_same_bits_by_memory_and_by_messages_on_' + grid
    return function


for g in GRIDS:
    for make in (takes_the_iterations_of_one_rank, has_no_exchange_and_no_sum_there, has_the_same_bits_on_all_ranks,
                 gives_the_same_bits_by_memory_and_by_messages):
        tap.test(make(g))
tap.run()
