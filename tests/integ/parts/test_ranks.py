#!/usr/bin/env python3
"""Ranks of a program, each with its part, over libquark and the real engine: test_ranks.py QUARKD QUARK_ENGINE QUARK_GAUGE RANKS_PROGRAM"""
import os
import subprocess
import sys
import tempfile

import tap

try:
    import numpy as np
    from daemon_case import DIMS, DaemonCase
    from field_links import bytes_of, noisy
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


class Ranks(DaemonCase):
    def __init__(self, quarkd, engine, quark_gauge, program):
        super().__init__(quarkd, engine, quark_gauge)
        self.program = program

    def play(self, endpoint, way):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'links')
            with open(path, 'wb') as f:
                f.write(bytes_of(noisy(DIMS, 3)))
            return subprocess.run([self.program, endpoint, way, path, *map(str, DIMS)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=120)


@tap.test
def eight_ranks_do_what_one_does(case):
    with case.daemon() as d:
        for way in 'local', 'socket':
            done = case.play(d.endpoint, way)
            assert done.returncode == 0, (way, done, d.said())
        d.status_when(lambda s: s.counters.requests == 0 and s.memory_used == 0)
        assert d.terminate() == 0


if __name__ == '__main__':
    tap.run(Ranks(*sys.argv[1:]))
