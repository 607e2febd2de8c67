"""The same digits by whatever way faces and sums travel: transports.py RANKS_PROGRAM MG_RANKS_PROGRAM

QK_RANKS_PER_HOST makes several hosts of one: faces then go to some neighbours through memory and to others in messages.
"""
import os
import subprocess
import sys

import tap

RANKS, MG_RANKS = sys.argv[1:3]
LATTICES = {RANKS: 'builtin:weak:4x4x8x16:11', MG_RANKS: 'builtin:weak:8x8x4x16:4'}
GRIDS = {RANKS: ('1x1x2x2', '1x1x1x4'), MG_RANKS: ('1x1x1x4',)}
COUNT = '4'


def numbers(program, grid, **env):
    command = ['mpirun', '-np', COUNT, program, LATTICES[program], *grid.split('x')]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env={**os.environ, **env})
    assert run.stdout.count('\n') > 20, run.stdout
    return run.stdout


def same(program, name):
    def function():
        for grid in GRIDS[program]:
            messages = numbers(program, grid, QK_TRANSPORT='staged')
            for env in {'QK_TRANSPORT': 'peer'}, {'QK_RANKS_PER_HOST': '2'}:
                got = numbers(program, grid, **env).splitlines()
                other = [(a, b) for a, b in zip(messages.splitlines(), got) if a != b]
                assert not other, (grid, env, other)
    function.__name__ = name
    return function


tap.test(same(RANKS, 'operators_and_solutions'))
tap.test(same(MG_RANKS, 'multigrid'))
tap.run()
