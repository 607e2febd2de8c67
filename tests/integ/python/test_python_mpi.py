"""Bricks of several ranks in Python: test_python_mpi.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE MPIRUN"""
import importlib.util
import os
import subprocess
import sys

import tap

if not importlib.util.find_spec('mpi4py'):
    tap.skip_all('python3-mpi4py is needed')
from cli_case import SHAPE, Case, np, random_sources

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'mpi_program.py')


def noisy_links(seed):
    rng = np.random.default_rng(seed)
    q, r = np.linalg.qr(np.eye(3) + 0.2 * rng.normal(size=SHAPE[:4] + (4, 3, 3, 2)) @ np.array([1, 1j]))
    q = q * (np.einsum('...ii->...i', r) / abs(np.einsum('...ii->...i', r)))[..., None, :]
    return q / np.linalg.det(q)[..., None, None] ** (1 / 3)


def on_ranks(case, n):
    with case.daemon('--slots=12') as d:
        d.wait_listening()
        np.save(d.path('b.npy'), random_sources(2))
        np.save(d.path('links.npy'), np.moveaxis(case.links, 0, 4))
        np.save(d.path('other.npy'), noisy_links(5))
        done = subprocess.run([sys.argv[6], '-np', str(n), sys.executable, '-m', 'mpi4py', PROGRAM, d.endpoint, d.folder.name], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=100)
        assert done.returncode == 0 and 'all is well on %d ranks' % n in done.stdout, done.stdout


@tap.test
def bricks_of_four_ranks_are_the_whole(case):
    on_ranks(case, 4)


@tap.test
def fields_of_pyquda_and_gpt_are_solved_on_one_rank_and_on_four(case):
    """Against the oracle, isotropic and anisotropic. Fields of GPT on four ranks by the way, whose numbers go by t first."""
    here = os.path.dirname(PROGRAM)
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([os.path.join(here, 'standin'), os.environ['PYTHONPATH']]))
    with case.daemon('--slots=12') as d:
        d.wait_listening()
        np.save(d.path('b.npy'), random_sources(2))
        np.save(d.path('links.npy'), noisy_links(6))
        for ranks, start in ('1', []), ('4', [sys.argv[6], '-np', '4']):
            run = [*start, sys.executable, '-m', 'mpi4py', os.path.join(here, 'pyquda_program.py'), d.endpoint, d.folder.name, ranks]
            done = subprocess.run(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100, env=env)
            assert done.returncode == 0 and 'all is well\n' in done.stdout and ('with GPT' in done.stdout) == bool(start), done.stdout


tap.run(Case(*sys.argv[1:6]))
