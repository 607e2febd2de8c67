"""quark-gauge generate, smear and fix on several ranks: generate.py QUARK_GAUGE

Every grid leaves the files of one rank, byte by byte, and a chain that stopped on one grid goes on on another.
"""
import os
import subprocess
import sys
import tempfile

import tap

DATA_ERROR = 65


def call(exe, grid, *args, **environment):
    ranks = 1
    for n in (grid or '1').split('x'):
        ranks *= int(n)
    launch = ['mpirun', '-np', str(ranks), exe, args[0], '--grid=' + grid] if grid else [exe, args[0]]
    return subprocess.run([*launch, *args[1:]], capture_output=True, text=True, timeout=240, env={**os.environ, **environment})


def generate(exe, grid, folder, *options, **environment):
    return call(exe, grid, 'generate', '--dims=8x4x4x8', '--beta=5.9', '--sweeps=4', '--every=2', '--seed=3', '--start=hot',
                '--out=%s/c%%d.lime' % folder, '--quiet', *options, **environment)


def files(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith('.lime'):
            with open(os.path.join(folder, name), 'rb') as f:
                found[name] = f.read()
    return found


@tap.test
def every_grid_leaves_the_files_of_one_rank(exe):
    for action in ('wilson', 'iwasaki'):
        want = None
        for grid in (None, '1x1x1x2', '2x1x1x1', '2x1x1x2'):
            with tempfile.TemporaryDirectory() as folder:
                done = generate(exe, grid, folder, '--action=' + action)
                assert done.returncode == 0, done.stderr
                assert done.stdout.count('digest') == 1
                found = files(folder)
                assert sorted(found) == ['c2.lime', 'c4.lime']
                want = want or found
                assert found == want, (action, grid)


@tap.test
def a_chain_goes_on_on_another_grid(exe):
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as folder:
        assert generate(exe, None, whole, '--bits=32').returncode == 0
        assert generate(exe, '1x1x1x2', folder, '--bits=32', '--sweeps=3').returncode == 0
        assert sorted(files(folder)) == ['c.state-3.lime', 'c2.lime']
        assert generate(exe, '2x1x1x2', folder, '--bits=32', '--resume').returncode == 0
        assert files(folder) == files(whole)


@tap.test
def failures_of_one_rank_are_told_once_and_end_all(exe):
    with tempfile.TemporaryDirectory() as folder:
        done = generate(exe, '1x1x1x2', folder, QK_FAULTS='write:6')
        assert done.returncode == DATA_ERROR and done.stderr.count('No space left') == 1 and not files(folder), done
        assert generate(exe, '1x1x1x2', folder).returncode == 0
        before = files(folder)
        done = generate(exe, '1x1x1x2', folder)
        assert done.returncode == DATA_ERROR and done.stderr.count('--resume') == 1, done
        os.unlink(os.path.join(folder, 'c.state'))
        with open(os.path.join(folder, 'c.state'), 'w') as f:
            f.write('{')
        done = generate(exe, '1x1x1x2', folder, '--resume')
        assert done.returncode == DATA_ERROR and done.stderr.count('damaged') == 1, done
        assert files(folder) == before


@tap.test
def smeared_links_are_those_of_one_rank(exe):
    with tempfile.TemporaryDirectory() as folder:
        for number, grid in enumerate((None, '1x1x1x2', '2x1x1x2')):
            for kind in ('ape:0.6,3', 'hyp:0.75,0.6,0.3,1'):
                done = call(exe, grid, 'smear', '--links=' + kind, 'builtin:weak:8x4x4x8:1',
                            '%s/%s%d.lime' % (folder, kind[:3], number))
                assert done.returncode == 0 and done.stdout.count('plaquette') == 1, done
        told = [subprocess.run([exe, 'info', '%s/%s%d.lime' % (folder, kind, n)], capture_output=True, text=True, check=True)
                for kind in ('ape', 'hyp') for n in range(3)]
        plaquettes = [next(line.split()[1] for line in t.stdout.splitlines() if line[:9] == 'plaquette') for t in told]
        for kind in (plaquettes[:3], plaquettes[3:]):
            assert max(map(float, kind)) - min(map(float, kind)) < 1e-13, plaquettes


@tap.test
def fixed_files_are_those_of_one_rank(exe):
    for options in (['--gauge=landau'], ['--gauge=coulomb', '--random-start=3']):
        want = None
        for grid in (None, '1x1x1x2', '2x1x1x1', '1x2x2x1', '2x1x1x2'):
            with tempfile.TemporaryDirectory() as folder:
                done = call(exe, grid, 'fix', '--tol=1e-16', '--quiet', '--transform=%s/g.lime' % folder, *options,
                            'builtin:weak:8x8x8x8:1', folder + '/u.lime')
                assert done.returncode == 0 and done.stdout.count('theta') == 1, done
                found = files(folder)
                assert sorted(found) == ['g.lime', 'u.lime']
                want = want or found
                assert found == want, (options, grid)


@tap.test
def ranks_agree_that_fixing_has_not_ended(exe):
    with tempfile.TemporaryDirectory() as folder:
        done = call(exe, '1x1x1x2', 'fix', '--gauge=landau', '--max-iter=3', 'builtin:weak:8x4x4x8:1', folder + '/u.lime')
        assert done.returncode == DATA_ERROR and done.stderr.count('theta = ') == 1 and not os.listdir(folder), done


tap.run(sys.argv[1])
