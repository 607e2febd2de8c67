"""The package under mypy --strict, as its users see it with py.typed: test_types.py SOURCE PACKAGE_FOLDER"""
import importlib.util
import os
import subprocess
import sys
import tempfile

import tap

if not importlib.util.find_spec('mypy'):
    tap.skip_all('mypy is needed')

SOURCE, FOLDER = map(os.path.abspath, sys.argv[1:3])
# What a user writes; each line that ends in "# wrong" is a mistake.
PROGRAM = '''
import numpy as np
import quarkd
from numpy.typing import NDArray

def main(b: NDArray[np.complex128]) -> float:
    with quarkd.connect('tcp://127.0.0.1:5555', user='me') as q:
        future: quarkd.Future = q.submit(b, tol=1e-8)
        prop = q.propagator(quarkd.point(0, 0, 0, 0).smeared(width=2, steps=20), flavour=-1)
        quarkd.point('0', 0, 0, 0)  # wrong
        prop.sequential('g5', t='8')  # wrong
        number: int = prop.correlator(['pion'])['pion'].meff()  # wrong
        q.sovle(b)  # wrong
        return future.info().residual
'''


def mypy(*arguments):
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run([sys.executable, '-m', 'mypy', '--config-file', os.path.join(SOURCE, 'pyproject.toml'), '--cache-dir', cache,
                               '--no-pretty', '--hide-error-context', *arguments], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


@tap.test
def the_package_is_clean():
    code, text = mypy('--no-error-summary', 'quarkd')
    assert code == 0 and not text, text


@tap.test
def users_programs_are_checked_against_it():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'program.py')
        with open(path, 'w', encoding='ascii') as f:
            f.write(PROGRAM)
        _, text = mypy('--no-error-summary', path)
    found = {int(line.split(':')[1]) for line in text.splitlines()}
    wrong = {n for n, line in enumerate(PROGRAM.split('\n'), 1) if line.endswith('# wrong')}
    assert found == wrong, text


tap.run()
