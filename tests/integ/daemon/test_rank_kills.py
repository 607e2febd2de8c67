#!/usr/bin/env python3
"""Ranks of the real engine that are killed, or stopped, in each phase: nothing is lost and nothing hangs.

test_rank_kills.py QUARKD QUARK_ENGINE QUARK_GAUGE RANKS
"""
import contextlib
import glob
import os
import signal
import sys

import tap

try:
    from daemon_case import DaemonCase
    from front_driver import Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

FEW = ('--solver', 'mg', '--mg-vectors', '16', '--mg-setup-passes', 'none', '--mg-checkpoint', 'off')
MANY, TOL = 12, 1e-11


def ranks_of(daemon):
    """The pids of the ranks in their order."""
    found = {}
    for path in glob.glob('/proc/[0-9]*'):
        with contextlib.suppress(OSError), open(path + '/environ', 'rb') as f:
            variables = dict(v.split(b'=', 1) for v in f.read().split(b'\0') if b'=' in v)
            if variables.get(b'XDG_RUNTIME_DIR') == daemon.dir.encode() and b'OMPI_COMM_WORLD_RANK' in variables:
                found[int(variables[b'OMPI_COMM_WORLD_RANK'])] = int(path.split('/')[2])
    return [found[r] for r in sorted(found)]


def expect_all(case, client, accepted, fields):
    """Each right-hand side is answered once, and rightly."""
    seen = []
    for r in client.results(len(fields)):
        seen.append(r.rhs)
        assert r.status == 0 and case.residual(client.fetch(r), fields[r.rhs]) <= TOL, r
    assert sorted(seen) == list(range(len(fields))), seen
    client.ack(accepted.request)


def work(case, client):
    fields = [case.noise(s) for s in range(MANY)]
    accepted = client.submit(MANY, tol=TOL)
    client.upload(accepted, fields)
    return accepted, fields


def solving(daemon, pending=2):
    return daemon.status_when(lambda s: s.counters.running > 0 and s.counters.queued >= pending)


@tap.test
def a_rank_killed_while_the_engine_loads(case):
    """The first and the last, as soon as a phase of the start is seen; a setup is given up after three such engines in a row."""
    seen = set()
    for _ in range(2):
        with case.daemon(*FEW, '--slots', '4', wait=None) as d:
            killed = 0
            while killed < 2:
                s = d.status_when(lambda s: s.state == qk.STATE_READY or (s.state == qk.STATE_LOADING and s.phase not in ('', *seen)))
                if s.state == qk.STATE_READY:
                    break
                ranks = ranks_of(d)
                if not ranks:
                    continue  # not there yet
                seen.add(s.phase)
                os.kill(ranks[-killed], signal.SIGKILL)
                killed += 1
                d.log('engine lost', killed)
            assert d.log('ready: ')
            with Client(d) as c:
                expect_all(case, c, *work(case, c))
            assert d.status().engine.restarts == killed
            assert d.terminate() == 0
    print('# killed in %s' % sorted(seen))
    assert len(seen) >= 2, seen


@tap.test
def a_rank_killed_while_it_solves_or_waits(case):
    with case.daemon(*FEW, '--slots', '4') as d, Client(d) as c:
        killed = 0
        for rank in range(int(case.ranks)):
            accepted, fields = work(case, c)
            solving(d)
            os.kill(ranks_of(d)[rank], signal.SIGKILL)
            killed += 1
            expect_all(case, c, accepted, fields)
        d.status_when(lambda s: s.counters.requests == 0)
        os.kill(ranks_of(d)[-1], signal.SIGKILL)  # nothing to do: it waits
        killed += 1
        d.log('ready: ', 1 + killed)
        expect_all(case, c, *work(case, c))
        s = d.status_when(lambda s: s.counters.requests == 0)
        assert (s.engine.restarts, s.counters.lost, s.memory_used) == (killed, 0, 0), s
        assert d.terminate() == 0


@tap.test
def a_rank_that_is_stopped_for_less_than_the_limit_costs_nothing_else(case):
    with case.daemon(*FEW, '--slots', '4', env={'QK_PEER_LIMIT': '100'}) as d, Client(d) as c:
        for pid in ranks_of(d):
            accepted, fields = work(case, c)
            before = solving(d).counters.converged
            os.kill(pid, signal.SIGSTOP)
            try:
                for _ in range(50):
                    assert d.status().counters.converged - before <= 4  # the front answers, the slots stand still
            finally:
                os.kill(pid, signal.SIGCONT)
            expect_all(case, c, accepted, fields)
        s = d.status_when(lambda s: s.counters.requests == 0)
        assert (s.engine.restarts, s.counters.lost, s.memory_used) == (0, 0, 0), s
        assert d.terminate() == 0


@tap.test
def a_rank_that_is_stopped_for_longer_ends_the_engine(case):
    """In an exchange the others see it by themselves, in MPI the front does."""
    options = *FEW, '--slots', '4', '--engine-timeout', '6'
    with case.daemon(*options, env={'QK_PEER_LIMIT': '2'}) as d, Client(d) as c:
        accepted, fields = work(case, c)
        solving(d)
        os.kill(ranks_of(d)[-1], signal.SIGSTOP)
        expect_all(case, c, accepted, fields)
        d.status_when(lambda s: s.counters.requests == 0)
        os.kill(ranks_of(d)[0], signal.SIGSTOP)  # all wait for work
        expect_all(case, c, *work(case, c))
        s = d.status_when(lambda s: s.counters.requests == 0)
        print('# lost: %s' % [line.split('engine lost: ')[1].strip() for line in d.lines if 'engine lost: ' in line])
        assert (s.engine.restarts, s.counters.lost, s.memory_used) == (2, 0, 0), s
        assert d.terminate() == 0


if __name__ == '__main__':
    tap.run(DaemonCase(*sys.argv[1:]))
