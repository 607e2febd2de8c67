#!/usr/bin/env python3
"""libquda.so with bricks of several MPI ranks: test_quda_ranks.py QUARKD QUARK_ENGINE QUARK_GAUGE LIBQUARK_A QUDA_PARTS_A MPIRUN"""
import contextlib
import glob
import os
import signal
import subprocess
import sys

import tap

try:
    import numpy as np
    import ref_dirac as ref
    from engine_case import BASES
    from front_driver import qk
    from front_keys import guarded, write
    from old_daemon import without
    from quda_case import CSW, DIMS, EVEN, G5, KAPPA, MASS, QudaCase, close
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

GRIDS = (1, 1, 1, 1), (1, 1, 1, 2), (1, 2, 1, 2), (2, 1, 2, 1), (2, 1, 2, 2)
GATHER = {'QUARK_QUDA_RANKS': '0'}
K2 = 2 * KAPPA
EACH, ROOT = 'bricks go from each rank', 'bricks go through rank 0'


def run(case, d, name, b, grid, **arguments):
    return case.run(d, name, b, mpi=True, ranks=int(np.prod(grid)), grid='%d,%d,%d,%d' % grid, **arguments)


def misses(f, x, b):
    return np.linalg.norm(b - f(x)) / np.linalg.norm(b)


@tap.test
def all_grids_give_the_bits_of_one_rank(case):
    b = case.noise(21, 3)
    with case.daemon('--csw', repr(CSW)) as d:
        whole, said = run(case, d, 'pyquda', b, GRIDS[0])
        assert misses(case.op.apply, whole[1], b[1]) < 2e-13 and 'bricks go' not in said
        for grid, env, way in (*((g, {}, EACH) for g in GRIDS[1:]), (GRIDS[4], {**GATHER, 'QUARK_QUDA_THREADS': '3'}, ROOT)):
            x, said = run(case, d, 'pyquda', b, grid, env=env)
            assert np.array_equal(x, whole) and 'setup main' in said and said.count('residual') == 1 and said.count(way) == 1, (grid, said)
        d.status_when(lambda s: s.counters.requests == 0)
        assert d.terminate() == 0


@tap.test
def forms_in_parts_are_those_of_the_oracle(case):
    b = case.noise(24)
    op, hop, inverse = case.op, case.op.hops, case.op.local_inverse
    with case.daemon('--csw', repr(CSW)) as d:
        for grid, env, device in ((GRIDS[2], case.device(), 1), (GRIDS[1], GATHER, 0)):
            x, _ = run(case, d, 'pyquda', b, grid, call='dslash', parity='odd', env=env, device=device)
            close(x[0], ~EVEN * inverse(hop(EVEN * b[0])) / K2)
        x, _ = run(case, d, 'pyquda', b, GRIDS[3], call='one', solution='matpc', matpc='oo', norm='mass')
        assert misses(lambda v: ~EVEN * (v - inverse(hop(inverse(hop(v)))) / 4) / K2 ** 2, x[0], ~EVEN * b[0]) < 2e-13
        x, _ = run(case, d, 'pyquda', b, GRIDS[2], call='one', solution='matdagmat', norm='kappa', tol=1e-12)
        assert misses(lambda v: K2 * K2 * op.apply_dagger(op.apply(v)), x[0], b[0]) < 1e-12
        assert d.terminate() == 0


@tap.test
def links_and_terms_of_milc_chroma_and_tmlqcd(case):
    b = case.noise(22)
    rng = np.random.default_rng(25)
    foreign = ref.WilsonClover(case.links, MASS, CSW)
    n = foreign.clover.shape
    foreign.clover = foreign.clover + 0.1 * (lambda a: a + np.conj(np.swapaxes(a, -1, -2)))(rng.normal(size=n) + 1j * rng.normal(size=n))
    with case.daemon('--csw', repr(CSW), '--user-setups', '9') as d:
        # recognised from bricks of two sites, too
        x, said = run(case, d, 'milc', b, GRIDS[2], clover=case.clover(case.op, K2))
        assert misses(lambda v: K2 * case.op.apply(v), G5 * x[0], G5 * b[0]) < 2e-13 and 'setup main' in said, said
        for grid, late in ((GRIDS[3], 0), (GRIDS[1], 1)):  # QMP's topology before initQuda, or after it
            x, said = run(case, d, 'chroma', b, grid, clover=case.clover(case.op, name='own'), late=late)
            hop, inverse = case.op.hops, case.op.local_inverse
            assert misses(lambda v: ~EVEN * (v - inverse(hop(inverse(hop(v)))) / 4), x[0], ~EVEN * b[0]) < 2e-13 and 'setup main' in said, said
        # links and terms are sent, in parts or by rank 0; another grid finds them
        turn = [np.einsum('ij,...jc->...ic', BASES[qk.BASIS_OPENQCD], f) for f in b]
        for theta, grid, env, sent in (((0.3, 0, -0.7, 1), GRIDS[4], {}, True), ((0.3, 0, -0.7, 1), GRIDS[1], {}, False),
                                       ((0.3, 0, 0.2, 1), GRIDS[2], GATHER, True)):
            u = case.links.copy()
            for mu in range(4):
                u[mu] *= np.exp(1j * np.pi * theta[mu] / DIMS[mu])
            x, said = run(case, d, 'tmlqcd', b, grid, theta='%r,%r,%r,%r' % theta, order='t', env=env)
            op = ref.WilsonClover(u, MASS, CSW, ref.PERIODIC)
            assert misses(lambda v: K2 * op.apply(v), np.einsum('ij,...jc->...ic', BASES[qk.BASIS_OPENQCD], x[0]), turn[0]) < 2e-12
            assert (': sent' in said) == sent and ('loading setup' in said) == sent, said
        x, said = run(case, d, 'tmlqcd', b, GRIDS[2], mu=K2 * 0.4, naive=1, order='t')
        op = ref.WilsonClover(case.links, MASS, CSW, twist=-0.4)
        assert misses(lambda v: K2 * op.apply(v), np.einsum('ij,...jc->...ic', BASES[qk.BASIS_OPENQCD], x[0]), turn[0]) < 2e-12
        for kappa, env in ((KAPPA, {}), (0.9 * KAPPA, GATHER)):  # the term is divided by it
            x, said = run(case, d, 'milc', b, GRIDS[2], clover=case.clover(foreign, K2), kappa=kappa, env=env)
            op = (lambda v: K2 * (foreign.apply(v) + foreign.hops(v) / 2) - kappa * foreign.hops(v))
            assert misses(op, G5 * x[0], G5 * b[0]) < 2e-13 and 'a clover term' in said and ': sent' in said, said
        assert d.terminate() == 0


@tap.test
def what_ends_one_rank_ends_all_with_one_sentence(case):
    b = case.noise(23)
    bad = b.copy()
    bad[0, 7, 3, 3, 3, 0, 0] = np.nan  # a site of the last rank
    with case.daemon('--csw', repr(CSW)) as d:
        for arguments, text in ((dict(b=bad), 'NAN_INPUT'), (dict(b=bad, env=GATHER), 'NAN_INPUT'), (dict(b=b, kappa=0), 'kappa = 0')):
            said = run(case, d, 'pyquda', grid=GRIDS[2], code=1, **arguments)
            lines = [line for line in said.splitlines() if text in line]
            assert len(lines) == 1 and lines[0].startswith('quark-quda: '), said
        said = case.run(d, 'pyquda', b, mpi=True, ranks=2, grid='1,1,1,1', code=1)
        assert 'a grid of 1,1,1,1 for 2 ranks' in said, said
        said = run(case, d, 'chroma', b, GRIDS[1], clover=case.clover(case.op, name='own'), late=2, code=1)
        assert said.count('a grid of 1,1,1,1 for 2 ranks: initCommsGridQuda says which, or QMP (chroma -geom)') == 1, said
        assert d.terminate() == 0


@tap.test
def a_daemon_without_parts_gets_whole_fields(case):
    b = case.noise(26)
    with case.daemon('--csw', repr(CSW)) as d, without(d, 2, 12) as endpoint:
        for kappa, loaded in ((KAPPA, False), (0.11, True)):
            x, said = run(case, d, 'pyquda', b, GRIDS[1], kappa=kappa, env={'QUARKD_ENDPOINT': endpoint})
            assert misses(ref.WilsonClover(case.links, 1 / (2 * kappa) - 4, CSW).apply, x[0], b[0]) < 2e-13
            assert said.count('too old for parts') == 1 and ('loading setup' in said) == loaded, said
        assert d.terminate() == 0


def process_of_rank(rank, mpirun):
    """Its number, when it runs."""
    for path in glob.glob('/proc/[0-9]*/environ'):
        with contextlib.suppress(OSError), open(path, 'rb') as f, open(path.replace('environ', 'status'), 'rb') as s:
            if b'OMPI_COMM_WORLD_RANK=%d' % rank in f.read().split(b'\0') and b'\nPPid:\t%d\n' % mpirun in s.read():
                return int(path.split('/')[2])
    raise AssertionError('rank %d does not run' % rank)


@tap.test
def a_rank_that_dies_leaves_the_daemon_well(case):
    b = case.noise(27, 2)
    with case.daemon('--csw', repr(CSW), '--lease', '2') as d:
        engine = d.status().engine.pid
        os.kill(engine, signal.SIGSTOP)  # so that it dies in the middle of a request
        command, environment = case.command(d, 'pyquda', b, mpi=True, ranks=2, grid='1,1,1,2')
        ranks = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        d.status_when(lambda s: s.counters.requests == 2)  # of the owner, and of who has joined it
        os.kill(process_of_rank(1, ranks.pid), signal.SIGKILL)
        said, _ = ranks.communicate(timeout=60)
        assert ranks.returncode != 0, said
        os.kill(engine, signal.SIGCONT)
        d.status_when(lambda s: s.counters.requests == 0 and s.memory_used == 0)
        x, _ = run(case, d, 'pyquda', b, GRIDS[1])
        assert misses(case.op.apply, x[1], b[1]) < 2e-13
        assert d.terminate() == 0


@tap.test
def ranks_show_the_key_of_their_user(case):
    b = case.noise(28)
    with guarded(case, '--csw', repr(CSW)) as (d, keys):
        ada = keys.add('ada')
        write(case.path('ada.key'), ada[2].decode() + '\n', 0o600)
        write(case.path('server.key.pub'), 'key = %s\n' % keys.server_public.decode(), 0o644)
        for server in (case.path('server.key.pub'), keys.server_public.decode()):
            x, _ = run(case, d, 'pyquda', b, GRIDS[1], env={'QUARKD_SERVER_KEY': server, 'QUARKD_KEY': case.path('ada.key')})
            assert misses(case.op.apply, x[0], b[0]) < 2e-13 and d.log('opened: user ada, program libquda/pyquda', 2), d.said()
        said = run(case, d, 'pyquda', b, GRIDS[0], code=1, env={'QUARKD_SERVER_KEY': case.path('ada.key'), 'QUARKD_KEY': case.path('ada.key')})
        assert 'QUARKD_SERVER_KEY = ' in said and 'neither 40 characters nor' in said, said
        assert d.terminate() == 0


if __name__ == '__main__':
    case = QudaCase(*sys.argv[1:])
    try:
        case.caller(mpi=True).program('pyquda')
        tap.run(case, beside=2)
    finally:
        case.close()
