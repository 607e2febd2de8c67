#!/usr/bin/env python3
"""One setup on several real engines: test_replicas.py QUARKD QUARK_ENGINE QUARK_GAUGE [RANKS]"""
import os
import signal
import sys
import tempfile

import tap

try:
    import numpy as np
    from daemon_case import GAUGE, DaemonCase
    from front_case import State, kill, once_more
    from front_driver import Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

LATTICE = 'builtin:weak:8x8x8x8:7'
MANY = 24
SAME = ('--solver', 'mg', '--slots', '2', '--single-rhs-solver', 'no')  # bits do not depend on load


class Case(DaemonCase):
    def lasting_engine(self, _):
        return self.engine


def replicas(status):
    return status.engine.replica


def all_ready(daemon, n=2):
    return replicas(daemon.status_when(lambda s: len(replicas(s)) == n and all(r.state == qk.STATE_READY for r in replicas(s))))


def sources():
    rng = np.random.default_rng(3)
    return [rng.standard_normal(8 ** 4 * 24).view(complex) for _ in range(MANY)]


def reference(case, fields):
    """The solutions of one engine that has read its multigrid from a checkpoint, as replicas have."""
    with tempfile.TemporaryDirectory() as folder:
        options = (*SAME, '--mg-checkpoint', os.path.join(folder, 'mg'))
        with case.daemon(*options, gauge=LATTICE) as d:
            d.status_when(lambda s: s.setup.multigrid.checkpoint_written)
            assert d.terminate() == 0
        with case.daemon(*options, gauge=LATTICE) as d, Client(d) as c:
            assert d.status().setup.multigrid.restored
            x = [x for r, x in c.solve(fields, tol=1e-10) if r.status == 0]
            assert len(x) == MANY and d.terminate() == 0
            return x


@tap.test
def both_engines_work_and_give_the_bits_of_one(case):
    fields = sources()
    with State(case) as state:
        expected = reference(case, fields)
        with state.daemon(*SAME, '--replicas', '2', gauge=LATTICE) as d, Client(d) as c:
            all_ready(d)
            for (r, x), y in zip(c.solve(fields, tol=1e-10), expected):
                assert r.status == 0 and np.array_equal(x, y), r
            there = replicas(d.status())
            print('# solved: %s' % [r.solved for r in there])
            assert sum(r.solved for r in there) == MANY and all(r.solved >= 4 for r in there), there
            assert d.terminate() == 0


@tap.test
def an_engine_that_is_killed_again_and_again_changes_no_bit(case):
    """Each right-hand side is answered once, and none is given up."""
    fields = sources()
    with State(case) as state:
        expected, seen, killed = reference(case, fields), [], set()
        with state.daemon(*SAME, '--replicas', '2', gauge=LATTICE) as d, Client(d) as c:
            for n in range(2):
                all_ready(d)
                accepted = c.submit(MANY, tol=1e-10)
                c.upload(accepted, fields)
                for k in range(MANY):
                    r = c.expect('result')
                    seen.append((n, r.rhs))
                    assert r.status == 0 and np.array_equal(c.fetch(r), expected[r.rhs]), r
                    victim = replicas(d.status())[1]
                    # the front may not yet have seen that the last one is dead
                    if k % 3 == 0 and victim.state == qk.STATE_READY and victim.pid not in killed:
                        os.kill(victim.pid, signal.SIGKILL)
                        killed.add(victim.pid)
                c.ack(accepted.request)
            assert sorted(seen) == [(n, k) for n in range(2) for k in range(MANY)], seen
            there, counters = all_ready(d), d.status().counters
            print('# killed %d times, redone %s, solved %s' % (len(killed), counters.lost, [r.solved for r in there]))
            assert len(killed) >= 2 and [r.restarts for r in there] == [0, len(killed)] and counters.lost == 0, there
            assert d.terminate() == 0
        state.is_empty()


@tap.test
def the_next_front_adopts_all_engines(case):
    fields = sources()
    with State(case) as state, state.fronts() as front:
        with front(*SAME, '--replicas', '2', gauge=LATTICE) as d, Client(d) as c:
            pids = [r.pid for r in all_ready(d)]
            c.upload(c.submit(MANY, tol=1e-10), fields)
            d.status_when(lambda s: s.counters.running + s.counters.queued + s.counters.converged == MANY)
            kill(d)
        with front(*SAME, '--replicas', '2', gauge=LATTICE) as d, Client(d, c.client_id) as c2:
            once_more(c2, MANY, 1, tol=1e-10)
            assert sorted(r.rhs for r in c2.results(MANY) if r.status == 0) == list(range(MANY))
            c2.ack(1)
            there = all_ready(d)
            assert [(r.pid, r.restarts) for r in there] == [(p, 0) for p in pids], there
            assert not [line for line in d.lines if 'loading' in line or 'engine started' in line], d.lines
            assert d.terminate() == 0
        state.is_empty()


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:]))
