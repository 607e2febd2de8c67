#!/usr/bin/env python3
"""five_d of SUBMIT with an engine that only pretends: test_front_five.py QUARKD"""
import sys

import tap

try:
    import numpy as np
    from front_case import Case, State, field, kill
    from front_driver import STATUS, Client, qk
    from setups_case import load_and_wait
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

FEATURE, LS, SITES = 19, 3, 256
FIELD = LS * SITES * 24 * 8
WALL = '--action=moebius', '--set=Ls=%d' % LS, '--set=M5=1.4', '--solver=cg'


class Walls(Case):
    def daemon(self, *options, **more):
        return super().daemon(*(WALL + options), **more)


def five():
    return field(LS * SITES)


def rejected(c, how, words, **more):
    r = c.submit(expect='rejected', **{'five_d': True, **more})
    assert r.status == STATUS[how] and words in r.text, r


@tap.test
def fields_have_all_slices(case):
    with case.daemon() as d, Client(d) as c:
        assert FEATURE in c.welcome.feature
        for dtype, real in (qk.DTYPE_F64, np.complex128), (qk.DTYPE_F32, np.complex64):
            b = [five().astype(real) for _ in range(2)]
            for (result, x), source in zip(c.solve(b, real, dtype=dtype, five_d=True), b):
                assert result.status == 0 and result.bytes == FIELD * np.dtype(real).itemsize // 16 and np.array_equal(x, 2 * source), result
        zero = np.zeros(LS * SITES * 12, complex)
        zero[:5], zero[-7:] = 1, 1j  # with holes, on one slice of time of the first and the last
        (result, x), = c.solve([zero], five_d=True)
        assert np.array_equal(x, 2 * zero)
        a = c.submit(2, source=qk.SOURCE_POINT, five_d=True)
        assert a.field_bytes == FIELD and all(c.fetch(r).nbytes == FIELD for r in c.results(2))
        b = field()
        (result, x), = c.solve([b])  # others as ever
        assert np.array_equal(x, 2 * b)


@tap.test
def what_is_not_defined_is_refused(case):
    with case.daemon() as d, Client(d) as c:
        rejected(c, 'BAD_ARGUMENT', 'five_d = 1: only solves (work = 0) have, not work = 7', work=qk.WORK_SMEAR)
        rejected(c, 'BAD_ARGUMENT', 'five_d = 1: a source of five dimensions is not smeared (steps = 3)', smear=qk.Smearing(alpha=1, steps=3))
        rejected(c, 'UNSUPPORTED', 'five_d = 1: fields of five dimensions go whole', grid=[1, 1, 1, 2], part=0)
        rejected(c, 'BAD_ARGUMENT', 'five_d = 1: solutions of five dimensions are not projected', sink=qk.SINK_PROJECT, project='low', project_count=1,
                 source=qk.SOURCE_POINT)
        rejected(c, 'UNSUPPORTED', 'parity', parity=qk.PARITY_EVEN)
        rejected(c, 'UNSUPPORTED', 'tol_hq', tol_hq=1e-6)
        load_and_wait(d, c, 'four', action='wilson', parameter=[qk.Setting(key='mass', value='0.1')], csw=None)
        rejected(c, 'BAD_ARGUMENT', 'five_d = 1: fields of the action wilson of this setup have four dimensions', setup='four')
        kept = c.submit(12, source=qk.SOURCE_POINT, sink=qk.SINK_KEEP, five_d=True).request
        c.results(12)
        rejected(c, 'UNSUPPORTED', 'request %d has solutions of five dimensions (five_d), which are no sources' % kept, source=qk.SOURCE_SEQUENTIAL,
                 column=[qk.Column(request=kept)])
        rejected(c, 'UNSUPPORTED', 'has solutions of five dimensions', source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=kept)], five_d=False)
        r = c.contract(kept, expect='rejected')
        assert r.status == STATUS['UNSUPPORTED'] and 'are not contracted' in r.text, r
        four = c.submit(12, source=qk.SOURCE_POINT, sink=qk.SINK_KEEP).request
        c.results(12)
        a = c.submit(1, source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=four, rhs=3)], five_d=True)
        assert a.field_bytes == FIELD and c.results(1)[0].status == 0


@tap.test
def memory_and_quotas_count_all_slices(case):
    with case.daemon('--max-memory=%d' % (8 * FIELD), '--keep-memory=%d' % (2 * FIELD)) as d, Client(d) as c:
        rejected(c, 'TOO_LARGE', 'max-memory', nrhs=5)
        rejected(c, 'TOO_LARGE', 'keep-memory', nrhs=3, source=qk.SOURCE_POINT, sink=qk.SINK_KEEP)
        assert c.submit(2, source=qk.SOURCE_POINT, sink=qk.SINK_KEEP, five_d=True).field_bytes == FIELD
        c.results(2)


@tap.test
def a_killed_front_goes_on_with_them(case):
    with State(case) as state:
        b = [five() for _ in range(2)]
        with state.daemon() as d, Client(d) as c:
            a = c.submit(2, five_d=True, detach_ms=3600 * 1000)
            c.upload(a, b)
            c.results(2)
            kill(d)
        with state.daemon() as d, Client(d, c.client_id) as c2:
            c2.send(attach=qk.Attach(request=a.request))
            attached = c2.expect('attached')
            assert attached.submit.five_d and attached.accepted.field_bytes == FIELD, attached.submit
            for r in c2.results(2):
                assert np.array_equal(c2.fetch(r, **{'from': 0}), 2 * b[r.rhs]), r
            c2.ack(a.request)
            assert d.terminate() == 0


tap.run(Walls(*sys.argv[1:]))
