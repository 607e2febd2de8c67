"""What the tests of quarkd with the engine that only pretends have in common."""
import os
import subprocess

import engine_driver

os.environ['QK_PROTO_PY'] = engine_driver.GENERATED.name

import numpy as np               # noqa: E402
from front_driver import Daemon  # noqa: E402
import fake_engine as fake       # noqa: E402,F401

FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'fake_engine.py')
rng = np.random.default_rng(7)


class Case:
    def __init__(self, binary):
        self.binary = binary

    def daemon(self, *options, **more):
        return Daemon(self.binary, *options, **{'engine': FAKE, **more})

    def run(self, *options):
        return subprocess.run([self.binary, *options], capture_output=True, text=True, timeout=60)


def field(sites=256):
    """One right-hand side in double precision."""
    return rng.standard_normal(sites * 24).view(complex)


def check_solves(client, n=2):
    fields = [field() for _ in range(n)]
    for (result, x), b in zip(client.solve(fields), fields):
        assert result.status == 0 and np.array_equal(x, 2 * b), result
