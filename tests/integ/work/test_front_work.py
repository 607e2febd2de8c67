#!/usr/bin/env python3
"""Work, adjoints and fields of one parity, from SUBMIT to FILL, with an engine that gives a solution times numbers that say what was asked for:
test_front_work.py QUARKD"""
import os
import signal
import sys
import tempfile

import tap

try:
    import numpy as np
    from front_case import LATER, Case, State, fake, field, kill, once_more
    from front_driver import STATUS, Client, qk
    from front_local import Local
    from state_case import results_of
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

WORKS = qk.WORK_M, qk.WORK_HOP, qk.WORK_DIAG, qk.WORK_DIAG_INVERSE, qk.WORK_DIAG_INVERSE_HOP, qk.WORK_SMEAR
KAPPA = 1 / (2 * (4 + 0.1))
POWER = {qk.WORK_SOLVE: -1, qk.WORK_M: 1, qk.WORK_HOP: 0, qk.WORK_DIAG: 1, qk.WORK_DIAG_INVERSE: -1, qk.WORK_DIAG_INVERSE_HOP: -1,
         qk.WORK_SMEAR: 0}


def answer(b, work=qk.WORK_SOLVE, dagger=False, parity=qk.PARITY_ALL, schur=qk.SCHUR_NONE):
    return (1 + work) * (1j if dagger else 1) * 3 ** schur * (1 + 0.5 * parity) * (2 * b)


def half():
    """One right-hand side of one parity."""
    return field(128)


def check(client, request, fields, **asked):
    for r in sorted(client.results(len(fields)), key=lambda r: r.rhs):
        assert r.request == request and r.status == 0, r
        assert np.array_equal(client.fetch(r), answer(fields[r.rhs], **asked)), (r, asked)


def raw(client, **unknown):
    """A SUBMIT with numbers that its enums do not have: {field number: value}."""
    client.request += 1
    body = qk.Submit(request=client.request, nrhs=1, dtype=qk.DTYPE_F64, tol=1e-8, source=qk.SOURCE_UPLOAD, sink=qk.SINK_DOWNLOAD)
    data = body.SerializeToString()
    for number, value in unknown.items():
        tag = int(number[1:]) << 3
        data += bytes((tag & 127 | 128, tag >> 7, value))
    size = len(data)
    assert size < 128
    client.control.send(bytes((2 << 3 | 2, size)) + data)
    return client.expect('rejected')


@tap.test
def a_daemon_says_that_it_knows_work(case):
    with case.daemon() as d, Client(d) as c:
        assert 4 in c.welcome.feature


@tap.test
def each_request_is_what_it_asks_for(case):
    with case.daemon() as d, Client(d) as c:
        for work in (qk.WORK_SOLVE,) + WORKS:
            for dagger in False, True:
                accepted, fields = c.submit(2, work=work, dagger=dagger), [field(), field()]
                c.upload(accepted, fields)
                check(c, accepted.request, fields, work=work, dagger=dagger)
                c.ack(accepted.request)


@tap.test
def the_normalisation_is_a_factor_of_each_work(case):
    with case.daemon() as d, Client(d) as c:
        for work, power in POWER.items():
            b = field()
            (r, x), = c.solve([b], work=work, normalisation=qk.NORMALISATION_KAPPA)
            assert r.status == 0 and np.allclose(x, answer(b, work) * (2 * KAPPA) ** power, rtol=1e-14, atol=0), work


@tap.test
def tolerance_and_iterations_do_not_count(case):
    with case.daemon() as d, Client(d) as c:
        for more in dict(tol=0), dict(tol=float('nan')), dict(tol=-1), dict(tol=7), dict(max_iter=0), dict(max_iter=2 ** 64 - 1):
            b = field()
            (r, x), = c.solve([b], work=qk.WORK_HOP, **more)
            assert r.status == 0 and r.true_residual == 0 and np.array_equal(x, answer(b, qk.WORK_HOP)), (more, r)
            r = c.submit(1, **more, expect='rejected')
            assert r.status == STATUS['BAD_ARGUMENT'], (more, r)
        b = field()
        (r, x), = c.solve([b], work=qk.WORK_M, tol=0)
        assert r.status == 0
        slots = d.status(activity=True).activity.slot
        assert all(s.tol == 0 for s in slots), slots


@tap.test
def what_does_not_exist_is_refused_and_nobody_else_notices(case):
    with case.daemon('--slots', '2') as d, Client(d) as c:
        b = field()
        accepted = c.submit(1, work=qk.WORK_M)
        for value in 8, 127:
            r = raw(c, f20=value)
            assert (r.status, r.text) == (STATUS['BAD_ARGUMENT'], 'work = %d is outside 0 .. 7' % value), r
        c.upload(accepted, [b])
        check(c, accepted.request, [b], work=qk.WORK_M)


@tap.test
def adjoints_of_doublets_are_worked_on_but_not_solved_for(case):
    doublet = '--action', 'doublet', '--set', 'mu=0.1', '--set', 'epsilon=0.05'
    with case.daemon(*doublet, gauge='builtin:fake:site_reals=48:columns=24') as d, Client(d) as c:
        r = c.submit(1, dagger=True, expect='rejected')
        assert r.status == STATUS['UNSUPPORTED'] and r.text.startswith('dagger: the adjoint of the action doublet'), r
        accepted, b = c.submit(1, dagger=True, work=qk.WORK_M), field(2 * 256)
        c.upload(accepted, [b])
        check(c, accepted.request, [b], work=qk.WORK_M, dagger=True)


@tap.test
def a_repetition_with_other_work_is_another_request(case):
    with case.daemon() as d, Client(d) as c:
        first = c.submit(1, work=qk.WORK_M)
        assert c.submit(1, request=first.request, work=qk.WORK_M).repeated_submit
        for other in dict(), dict(work=qk.WORK_HOP), dict(work=qk.WORK_M, dagger=True):
            r = c.submit(1, request=first.request, expect='rejected', **other)
            assert r.status == STATUS['BAD_ARGUMENT'] and 'exists with other parameters' in r.text, r


@tap.test
def work_goes_through_kept_results(case):
    """M of what was kept; a kept result of work as the source of a solve."""
    with case.daemon() as d, Client(d) as c:
        b = field()
        kept = c.submit(1, sink=qk.SINK_KEEP, work=qk.WORK_HOP)
        c.upload(kept, [b])
        check(c, kept.request, [b], work=qk.WORK_HOP)
        for work in qk.WORK_SOLVE, qk.WORK_M:
            c.submit(1, source=qk.SOURCE_SEQUENTIAL, work=work, column=[qk.Column(request=kept.request, gamma=0, t=-1)])
            r = c.expect('result')
            assert r.status == 0 and np.array_equal(c.fetch(r), (1 + work) * answer(b, qk.WORK_HOP)), (r, work)


@tap.test
def work_that_waits_is_cancelled_and_ends_in_time(case):
    """In the engine, and in the queue behind it."""
    with case.daemon('--slots', '1') as d, Client(d) as c:
        b = field()
        for request in 1, 2:
            c.upload(c.submit(1, work=qk.WORK_M, max_iter=fake.HOLD), [b])
        d.status_when(lambda s: s.counters.running == 1 and s.counters.queued == 1)
        for request in 2, 1:
            c.send(cancel=qk.Cancel(request=request))
            r = c.expect('result')
            assert (r.request, r.status) == (request, STATUS['CANCELLED']), r
        for request in 3, 4:
            c.upload(c.submit(1, work=qk.WORK_M, max_iter=fake.HOLD, deadline_ms=200), [b])
        assert [r.status for r in c.results(2)] == [STATUS['DEADLINE']] * 2
        (r, x), = c.solve([b], work=qk.WORK_M)
        assert r.status == 0 and np.array_equal(x, answer(b, qk.WORK_M))


@tap.test
def a_lost_engine_costs_no_work(case):
    with case.daemon('--slots', '2') as d, Client(d) as c:
        fields = [field() for _ in range(3)]
        accepted = c.submit(3, max_iter=fake.HOLD_ONCE, work=qk.WORK_DIAG, dagger=True)
        c.upload(accepted, fields)
        pid = d.status_when(lambda s: s.counters.running == 2).engine.pid
        os.kill(pid, signal.SIGKILL)
        check(c, accepted.request, fields, work=qk.WORK_DIAG, dagger=True)


@tap.test
def the_journal_keeps_the_work(case):
    """Of what was kept, of what was in an entry, of what waited; of ATTACHED."""
    asked = dict(work=qk.WORK_DIAG_INVERSE, dagger=True)
    with State(case) as state:
        fields = [field() for _ in range(4)]
        with state.daemon('--slots', '1') as d, Client(d) as c:
            kept = c.submit(1, sink=qk.SINK_KEEP, **asked)
            c.upload(kept, fields[:1])
            check(c, 1, fields[:1], **asked)
            held = c.submit(2, max_iter=fake.HOLD_ONCE, tol=0, **asked)
            c.upload(held, fields[1:3])
            c.upload(c.submit(1, max_iter=fake.HOLD_ONCE), fields[3:])
            d.status_when(lambda s: s.counters.running == 1 and s.counters.queued == 2)
            kill(d)
        with state.daemon('--slots', '1', env=LATER) as d, Client(d, c.client_id) as c2:
            assert c2.welcome.resumed
            for request, nrhs, more in (2, 2, dict(tol=0, **asked)), (3, 1, {}):
                once_more(c2, nrhs, request, max_iter=fake.HOLD_ONCE, **more)
                for r in results_of(c2, request, nrhs):
                    more.pop('tol', None)
                    b = fields[{2: 1, 3: 3}[request] + r.rhs]
                    assert r.status == 0 and np.array_equal(c2.fetch(r), answer(b, **more)), r
            c2.send(attach=qk.Attach(request=2))
            told = c2.expect('attached', skip=('progress', 'credit', 'result')).submit
            assert (told.work, told.dagger) == (qk.WORK_DIAG_INVERSE, True)
            c2.results(2)  # they are told again
            c2.submit(1, request=4, source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=1, gamma=0)])
            r, = results_of(c2, 4, 1)
            assert r.status == 0 and np.array_equal(c2.fetch(r), answer(fields[0], **asked)), r
            c2.send(release=qk.Release(request=1))
            for request in 2, 3, 4:
                c2.ack(request)
            assert d.terminate() == 0


@tap.test
def an_engine_that_is_adopted_is_told_the_work_again(case):
    with State(case) as state, state.fronts() as front:
        fields = [field(), field()]
        with front('--slots', '1') as d, Client(d) as c:
            c.upload(c.submit(2, max_iter=fake.HOLD_ONCE, work=qk.WORK_HOP, dagger=True), fields)
            pid = d.status_when(lambda s: s.counters.running == 1 and s.counters.queued == 1).engine.pid
            kill(d)
        with front('--slots', '1') as d, Client(d, c.client_id) as c2:
            once_more(c2, 2, 1, max_iter=fake.HOLD_ONCE, work=qk.WORK_HOP, dagger=True)
            check(c2, 1, fields, work=qk.WORK_HOP, dagger=True)
            c2.ack(1)
            assert d.status().engine.pid == pid
            assert d.terminate() == 0


# ---- one parity

HALF = dict(parity=qk.PARITY_ODD, schur=qk.SCHUR_ASYMMETRIC)


@tap.test
def fields_of_one_parity_are_half_as_large(case):
    with case.daemon() as d, Client(d) as c:
        for parity in qk.PARITY_EVEN, qk.PARITY_ODD:
            for work, schur in (qk.WORK_SOLVE, 0), (qk.WORK_SOLVE, 1), (qk.WORK_SOLVE, 2), (qk.WORK_HOP, 0), (qk.WORK_SCHUR, 0), (qk.WORK_SCHUR, 2):
                accepted, fields = c.submit(2, work=work, schur=schur, parity=parity), [half(), half()]
                assert accepted.field_bytes == 128 * 24 * 8
                before = d.status().counters.bytes_in
                c.upload(accepted, fields)
                check(c, accepted.request, fields, work=work, schur=schur, parity=parity)
                assert d.status().counters.bytes_in - before == 2 * 128 * 24 * 8
                c.ack(accepted.request)
        (r, x), = c.solve([half().astype(np.complex64)], real=np.complex64, dtype=qk.DTYPE_F32, **HALF)
        assert r.status == 0 and r.bytes == 128 * 24 * 4 and len(x) == 128 * 12


@tap.test
def halves_go_by_descriptor_both_ways(case):
    with case.daemon() as d, Client(d) as c, Local(c) as local:
        fields, accepted = [half(), half()], c.submit(2, **HALF)
        for i, b in enumerate(fields):
            local.put(accepted.request, i, b.tobytes())
        for r in c.results(2):
            assert r.status == 0 and np.array_equal(local.fetch(r), answer(fields[r.rhs], **HALF)), r
        assert c.status().counters.bytes_local == 4 * fields[0].nbytes


@tap.test
def the_normalisation_is_a_factor_of_each_system(case):
    with case.daemon() as d, Client(d) as c:
        for work, schur, power in ((qk.WORK_SOLVE, 1, 0), (qk.WORK_SOLVE, 2, -1), (qk.WORK_SCHUR, 0, 0), (qk.WORK_SCHUR, 1, 0), (qk.WORK_SCHUR, 2, 1)):
            b, asked = half(), dict(work=work, schur=schur, parity=qk.PARITY_EVEN)
            (r, x), = c.solve([b], normalisation=qk.NORMALISATION_KAPPA, **asked)
            assert r.status == 0 and np.allclose(x, answer(b, **asked) * (2 * KAPPA) ** power, rtol=1e-14, atol=0), (work, schur)


@tap.test
def parities_and_systems_that_do_not_fit_are_refused(case):
    with case.daemon('--slots', '2') as d, Client(d) as c:
        b = half()
        accepted = c.submit(1, **HALF)
        for f, name in ('f22', 'parity'), ('f23', 'schur'):
            r = raw(c, **{f: 3})
            assert (r.status, r.text) == (STATUS['BAD_ARGUMENT'], '%s = 3 is outside 0 .. 2' % name), r
        for more, text in ((dict(schur=1), 'parity = 0: schur = 1 is of one parity'), (dict(work=qk.WORK_SCHUR), 'parity = 0: work = 6 is of one parity'),
                           (dict(work=qk.WORK_HOP, schur=2, parity=1), 'schur = 2: work = 2 has no such system')):
            r = c.submit(1, expect='rejected', **more)
            assert r.status == STATUS['BAD_ARGUMENT'] and r.text.startswith(text), r
        c.upload(accepted, [b])
        check(c, accepted.request, [b], **HALF)
    doublet = '--action', 'doublet', '--set', 'mu=0.1', '--set', 'epsilon=0.05'
    with case.daemon(*doublet, gauge='builtin:fake:site_reals=48:columns=24') as d, Client(d) as c:
        r = c.submit(1, work=qk.WORK_M, parity=1, expect='rejected')
        assert r.status == STATUS['UNSUPPORTED'] and r.text.startswith('a field of one parity: is not defined for a doublet'), r


@tap.test
def a_chunk_behind_the_end_of_half_a_field_breaks_the_protocol(case):
    with case.daemon() as d, Client(d) as c:
        accepted = c.submit(1, **HALF)
        c.data.send(c.piece(accepted.request, 0, field().tobytes(), 0, 1 << 20))
        c.error('BAD_PROTOCOL')


@tap.test
def kept_fields_of_one_parity_are_sources_but_not_contracted(case):
    with case.daemon() as d, Client(d) as c:
        b, first = half(), dict(work=qk.WORK_DIAG, parity=qk.PARITY_EVEN)
        kept = c.submit(1, sink=qk.SINK_KEEP, **first)
        c.upload(kept, [b])
        check(c, kept.request, [b], **first)
        for second in dict(), dict(parity=qk.PARITY_ODD), dict(work=qk.WORK_M):
            c.submit(1, source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=kept.request, gamma=0, t=-1)], **second)
            r = c.expect('result')
            want = np.resize(answer(b, **first), len(b) * (1 if second.get('parity') else 2))
            assert r.status == 0 and np.array_equal(c.fetch(r), answer(want, **second) / 2), (r, second)
        columns = c.keep(12, parity=qk.PARITY_ODD)
        whole = c.keep(12)
        for more in dict(a=columns), dict(a=whole, request_b=columns):
            r = c.contract(expect='rejected', **more)
            assert r.status == STATUS['BAD_ARGUMENT'] and 'request %d has fields of one parity (2)' % columns in r.text, r
        c.contract(whole)
        assert c.expect('result').status == 0


@tap.test
def files_have_fields_of_one_parity(case):
    with tempfile.TemporaryDirectory() as root, case.daemon('--file-roots', root) as d, Client(d) as c:
        fields = [half() for _ in range(3)]
        source, sink = os.path.join(root, 'b'), os.path.join(root, 'x')
        with open(source, 'wb') as f:
            f.write(b'head' + b''.join(b.tobytes() for b in fields))
        c.submit(3, source=qk.SOURCE_FILE, source_file=qk.File(path=source, offset=4), sink=qk.SINK_FILE, sink_file=qk.File(path=sink), **HALF)
        assert [r.status for r in c.results(3)] == [0] * 3
        assert np.array_equal(np.fromfile(sink, complex), np.concatenate([answer(b, **HALF) for b in fields]))
        c.submit(3, source=qk.SOURCE_FILE, source_file=qk.File(path=source, offset=4))
        assert [r.status for r in c.results(3)] == [STATUS['TRUNCATED']] * 3, 'of whole fields it has half'


@tap.test
def an_upload_of_one_parity_goes_on_after_the_front(case):
    """What was kept, what was in a slot, and an upload in the middle of its second field."""
    with State(case) as state:
        fields = [half() for _ in range(4)]
        with state.daemon('--slots', '1') as d, Client(d) as c:
            kept = c.submit(1, sink=qk.SINK_KEEP, **HALF)
            c.upload(kept, fields[:1])
            check(c, 1, fields[:1], **HALF)
            c.upload(c.submit(1, max_iter=fake.HOLD_ONCE, **HALF), fields[1:2])
            accepted = c.submit(2, **HALF)
            c.upload(accepted, fields[2:3])
            c.data.send(c.piece(accepted.request, 1, fields[3].tobytes(), 0, 4096))
            d.status_when(lambda s: s.counters.bytes_in == 3 * fields[0].nbytes + 4096 and s.counters.running == 1)
            kill(d)
        with state.daemon('--slots', '1', env=LATER) as d, Client(d, c.client_id) as c2:
            again = once_more(c2, 2, 3, **HALF)
            assert again.field_bytes == fields[0].nbytes and again.upload_next <= fields[0].nbytes + 4096
            c2.upload(again, fields[2:], begin=again.upload_next, chunk=2048)
            for request, sent in (3, fields[2:]), (2, fields[1:2]):
                if request == 2:
                    once_more(c2, 1, 2, max_iter=fake.HOLD_ONCE, **HALF)
                for r in results_of(c2, request, len(sent)):
                    assert r.status == 0 and np.array_equal(c2.fetch(r), answer(sent[r.rhs], **HALF)), r
            c2.send(attach=qk.Attach(request=3))
            told = c2.expect('attached', skip=('progress', 'credit', 'result')).submit
            assert (told.parity, told.schur) == (qk.PARITY_ODD, qk.SCHUR_ASYMMETRIC)
            c2.results(2)
            c2.submit(1, request=4, source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=1, gamma=0)], parity=qk.PARITY_EVEN)
            r, = results_of(c2, 4, 1)
            assert r.status == 0 and np.array_equal(c2.fetch(r), 1.5 * answer(fields[0], **HALF)), r
            c2.send(release=qk.Release(request=1))
            for request in 2, 3, 4:
                c2.ack(request)
            assert d.terminate() == 0


tap.run(Case(sys.argv[1]))
