"""quark-engine as the front sees it: test_engine.py QUARK_ENGINE QUARK_GAUGE RANKS

Solutions are judged by the numpy oracle: b - M x is computed here.
"""
import itertools
import os
import sys
import tempfile
import time
from contextlib import ExitStack

import tap
try:
    import numpy as np
    import ref_dirac as ref
    from engine_case import (BAD_ARGUMENT, BAD_GEOMETRY, BAD_PROTOCOL, BASES, CANCELLED, Case, DIMS, GAUGE,
                             NAN_INPUT, NOT_CONVERGED, NOT_READY, OK)
    from engine_driver import Vector, pb, qk
except (ImportError, FileNotFoundError) as missing:
    tap.skip_all('python3-zmq, python3-protobuf, protoc, numpy and scipy are needed: %s' % missing)


# ---- from start to ready ------------------------------------------------------------------------


@tap.test
def says_hello(case):
    with case.start() as e:
        assert e.hello.version == 1 and e.hello.ranks == case.ranks
        assert case.ranks > 1 or e.hello.pid == e.process.pid
        assert e.stop() == 0


@tap.test
def ready_tells_what_was_loaded(case):
    with case.loaded(slots=3) as e:
        r = e.facts
        assert (r.backend, r.format != '', r.slots, list(r.dims)) == ('cpu', True, 3, list(DIMS))
        assert r.ranks == case.ranks == np.prod(r.grid)
        assert abs(r.plaquette - ref.plaquette(case.links)) < 1e-12
        assert r.unitarity < 1e-13 and r.digest != 0 and r.device_bytes > 0 and r.host_bytes > 0 and r.seconds > 0
        assert e.stop() == 0


@tap.test
def load_reports_its_phases(case):
    with case.start() as e:
        e.load(GAUGE)
        phases = []
        name, body = e.receive()
        while name == 'load_progress':
            assert body.done <= body.total
            phases.append(body.phase)
            name, body = e.receive()
        assert name == 'ready' and phases[:2] == ['device', 'read'] and phases[-1] == 'solver', phases
        clocks = {c.phase: c.seconds for c in body.clock if not c.beside}
        assert list(clocks) == list(dict.fromkeys(phases)) + ['buffers'], (clocks, phases)
        assert min(clocks.values()) >= 0 and 0.5 * body.seconds < sum(clocks.values()) <= body.seconds, (clocks, body.seconds)
        assert [c.phase for c in body.clock if c.beside] == ['file', 'decode'], body.clock


@tap.test
def a_bad_load_leaves_the_engine_alive(case):
    bad = [(dict(gauge='/no/such/file'), None), (dict(gauge='builtin:weak:4x4x8:7'), None),
           (dict(gauge=GAUGE, dims=[4, 4, 4, 8]), BAD_GEOMETRY), (dict(gauge=GAUGE, grid=[3, 0, 0, 0]), BAD_GEOMETRY),
           (dict(gauge=GAUGE, solver='magic'), BAD_ARGUMENT), (dict(gauge=GAUGE, backend='abacus'), BAD_ARGUMENT),
           (dict(gauge=GAUGE, mass=-5), BAD_ARGUMENT), (dict(gauge=GAUGE, slots=65), BAD_ARGUMENT),
           (dict(gauge=GAUGE, link_reals=9), BAD_ARGUMENT), (dict(gauge=GAUGE, boundary=(1, 1, 1, 2)), BAD_ARGUMENT),
           (dict(gauge=GAUGE, csw=float('nan')), BAD_ARGUMENT), (dict(gauge='x' * 5000), BAD_ARGUMENT)]
    with case.start() as e:
        for load, status in bad:
            e.load(**load)
            failed = e.expect('load_failed', skip=('load_progress',))
            assert failed.text and 100 <= failed.status < 200, (load, failed)
            assert status in (None, failed.status), (load, failed)
        e.load(GAUGE)
        assert e.ready().slots == 2
        assert e.stop() == 0


@tap.test
def a_damaged_file_is_refused(case):
    with tempfile.TemporaryDirectory() as folder, case.start() as e:
        path = os.path.join(folder, 'short.nersc')
        with open(path, 'wb') as f:
            f.write(b'BEGIN_HEADER\nDATATYPE = 4D_SU3_GAUGE_3x3\nDIMENSION_1 = 4\n')
        e.load(path)
        assert 100 <= e.expect('load_failed', skip=('load_progress',)).status < 200
        e.load(GAUGE)
        e.ready()


@tap.test
def a_fill_before_load_is_answered(case):
    with case.start() as e:
        serial = e.fill(0, shm_in='/x')
        end = e.done()[serial]
        assert end.status == NOT_READY and not end.written


# ---- solving --------------------------------------------------------------------------------------


@tap.test
def solves_a_batch_of_uploads(case):
    n = 8
    with case.loaded(slots=n) as e:
        b = [case.random(k) for k in range(n)]
        tol = [10.0**-(4 + k) for k in range(n)]
        source = [Vector(case.shape, data=b[k]) for k in range(n)]
        sink = [Vector(case.shape) for k in range(n)]
        try:
            serials = [e.fill(k, tol[k], shm_in=source[k].name, shm_out=sink[k].name) for k in range(n)]
            ends = e.done(n)
            for k in range(n):
                end = ends[serials[k]]
                true = case.residual(sink[k].read(), b[k])
                assert end.status == OK and end.written and end.entry == k, end
                assert true <= tol[k] and abs(true - end.true_residual) < 1e-3 * true + 1e-14, (true, end)
                assert end.iterations > 0 and end.applications >= end.iterations and end.seconds > 0
                assert abs(end.norm_b / np.linalg.norm(b[k]) - 1) < 1e-12
                assert abs(end.norm_x / np.linalg.norm(sink[k].read()) - 1) < 1e-12
        finally:
            for v in source + sink:
                v.__exit__()


@tap.test
def every_solver_and_precision_solves(case):
    b, solvers, precisions = case.random(1), ('bicgstab', 'cg', 'gcr'), ('DOUBLE', 'SINGLE', 'HALF')
    # on several ranks each of them once
    for solver, inner in itertools.product(solvers, precisions) if case.ranks == 1 else zip(solvers, precisions):
        with case.loaded(slots=1, solver=solver, inner='PRECISION_' + inner, link_reals=12) as e:
            x, end = e.solve(b, tol=1e-11)
            assert end.status == OK and case.residual(x, b) <= 1e-11, (solver, inner, end)


@tap.test
def float_vectors_go_both_ways(case):
    with case.loaded() as e:
        b = case.random(2).astype('c8').astype(complex)
        x, end = e.solve(b, dtype=qk.DTYPE_F32, tol=1e-10)
        exact, _ = e.solve(b, tol=1e-10)
        assert end.status == OK and end.true_residual <= 1e-10
        assert np.abs(x - exact).max() < 2e-7 * np.abs(exact).max()


@tap.test
def the_factor_scales_the_solution(case):
    with case.loaded() as e:
        b = case.random(3)
        x, end = e.solve(b)
        y, scaled = e.solve(b, factor=-2.5)
        assert np.abs(y + 2.5 * x).max() < 1e-14 * np.abs(y).max()
        assert scaled.norm_x == end.norm_x


@tap.test
def bases_agree(case):
    """b and x in basis X are T b, T x in DeGrand-Rossi."""
    b = case.random(4)
    with case.loaded() as e:
        for basis, matrix in BASES.items():
            x, end = e.solve(b, basis=basis)
            assert end.status == OK and case.residual(matrix @ x, matrix @ b) < 1.1e-10, basis
            x, end = e.generate(case.shape, qk.SOURCE_POINT, column=dict(spin=2, colour=1), basis=basis)
            p = np.zeros(case.shape)
            p[0, 0, 0, 0, 2, 1] = 1
            assert end.status == OK and case.residual(matrix @ x, matrix @ p) < 1.1e-10, basis


@tap.test
def point_and_wall_sources_are_those_asked_for(case):
    with case.loaded() as e:
        x, end = e.generate(case.shape, qk.SOURCE_POINT, column=dict(x=1, y=3, z=6, t=5, spin=3, colour=2))
        b = np.zeros(case.shape)
        b[5, 6, 3, 1, 3, 2] = 1
        assert end.status == OK and end.norm_b == 1 and case.residual(x, b) < 1.1e-10
        x, end = e.generate(case.shape, qk.SOURCE_WALL, column=dict(t=7, spin=0, colour=1))
        b = np.zeros(case.shape)
        b[7, ..., 0, 1] = 1
        assert end.status == OK and case.residual(x, b) < 1.1e-10


@tap.test
def noise_sources_are_noise(case):
    """The source is seen through M x."""
    for source, values in (qk.SOURCE_Z2, [1, -1]), (qk.SOURCE_Z4, np.array([1 + 1j, 1 - 1j, -1 + 1j, -1 - 1j]) / 2**.5):
        with case.loaded() as e:
            column = dict(t=-1, spin=-1, colour=-1, seed=2**63 + 5)
            noise = lambda **more: case.op.apply(
                e.generate(case.shape, source, column={**column, **more}, tol=1e-12)[0])
            b = noise()
            distance = np.abs(b[..., None] - values)
            assert distance.min(axis=-1).max() < 1e-8
            share = np.bincount(distance.argmin(axis=-1).ravel(), minlength=len(values)) / b.size
            assert np.abs(share - 1 / len(values)).max() < 5 / np.sqrt(b.size), share
            assert np.abs(noise(seed=6) - b).max() > 1
            one = noise(t=2, spin=1, colour=0)
            want = np.zeros(case.shape, complex)
            want[2, ..., 1, 0] = b[2, ..., 1, 0]
            assert np.abs(one - want).max() < 1e-8


def refill(case, single_rhs):
    with case.loaded(slots=2, single_rhs=single_rhs) as e, Vector(case.shape) as sink:
        hard = e.fill(1, 1e-12, source=qk.SOURCE_Z2, column=qk.Column(t=-1, spin=-1, colour=-1, seed=1),
                      shm_out=sink.name)
        ends = {}
        for k in range(4):
            b = case.random(10 + k)
            with Vector(case.shape, data=b) as source, Vector(case.shape) as out:
                serial = e.fill(0, 1e-6, shm_in=source.name, shm_out=out.name)
                while serial not in ends:
                    ends.update(e.done())
                assert ends[serial].status == OK and case.residual(out.read(), b) <= 1e-6
        while hard not in ends:
            ends.update(e.done())
        assert ends[hard].status == OK and ends[hard].true_residual <= 1e-12


@tap.test
def slots_are_refilled_while_others_run(case):
    refill(case, False)


@tap.test
def slots_are_filled_while_one_runs_alone(case):
    refill(case, True)


@tap.test
def what_is_announced_is_waited_for(case):
    """And is not waited for in vain."""
    b = case.random(30)
    with case.loaded(slots=2, single_rhs=True) as e:
        alone, _ = e.solve(b, tol=1e-12)
        promised, end = e.solve(b, tol=1e-12, backlog=1)
        assert end.status == OK and np.array_equal(promised, alone)
        with Vector(case.shape, data=b) as source, Vector(case.shape) as one, Vector(case.shape) as other:
            serials = [e.fill(k, 1e-12, shm_in=source.name, shm_out=x.name, backlog=1 - k) for k, x in enumerate((one, other))]
            ends = e.done(2)
            assert all(ends[t].status == OK for t in serials) and np.array_equal(one.read(), other.read())
            assert np.abs(one.read() - alone).max() < 1e-10 * np.abs(alone).max()


def steps_until(e, serial, then=lambda end: None):
    """Steps of the solver before the slot of that serial ends as the last one; `then` hears of those that end before."""
    steps = None
    while True:
        name, body = e.receive(heartbeats=True)
        if name == 'heartbeat':
            steps = body.steps
        elif name == 'fill_done' and body.serial == serial():
            return steps
        elif name == 'fill_done':
            then(body)


@tap.test
def a_slot_that_becomes_free_loses_no_step_while_others_run(case):
    """The engine waits for what the front has in its queue, and not for ever where it does not come."""
    with case.endless(slots=2, staging=0) as e, Vector(case.shape, data=case.random(31)) as source:
        begin = lambda slot, n, **more: e.fill(slot, 1e-10, max_iter=n, shm_in=source.name, **more)
        before, total = 0, {}
        for n in (8, 80):
            serial = begin(0, n)
            total[n] = steps_until(e, lambda: serial) - before
            before += total[n]
        for _ in range(20):  # we, too, must be in time
            later = []
            first = begin(0, 8, backlog=1)
            begin(1, 40, backlog=1)
            after = steps_until(e, lambda: later[0] if later else None,
                                lambda end: later.append(begin(0, 80)) if end.serial == first else None)
            together, before = after - before, after
            if together == total[8] + total[80]:
                break
        assert together == total[8] + total[80], (together, total)
        first = begin(0, 8, backlog=1)
        second = begin(1, 40, backlog=7)
        assert set(e.done(2)) == {first, second}


@tap.test
def more_than_slots_wait_with_their_sources(case):
    """Staged: sources come and solutions leave beside the slots, and every one gets its own."""
    with case.loaded(slots=5) as e:
        n = e.facts.inflight
        assert n > e.facts.slots == 5
        b = [case.random(200 + k) for k in range(n)]
        alone = [e.solve(x)[0] for x in b]
        dtypes = [qk.DTYPE_F32 if k == 3 else qk.DTYPE_F64 for k in range(n)]
        for bad, cancelled in ((n, n), (5, 6)):
            with ExitStack() as stack:
                hold = lambda *arguments: stack.enter_context(Vector(case.shape, *arguments))
                sources = [hold(d, x) for d, x in zip(dtypes, b)]
                sinks = [hold(d) for d in dtypes]
                if bad < n:
                    sources[bad] = stack.enter_context(Vector(case.shape, bytes=100))
                serials = [e.fill(k, shm_in=sources[k].name, shm_out=sinks[k].name, dtype=dtypes[k], backlog=n - 1 - k)
                           for k in range(n)]
                if cancelled < n:
                    e.send(cancel=pb.CancelFill(entry=cancelled, serial=serials[cancelled]))
                ends = e.done(n)
                for k, t in enumerate(serials):
                    wanted = BAD_ARGUMENT if k == bad else CANCELLED if k == cancelled else OK
                    assert ends[t].status == wanted and ends[t].written == (wanted == OK), (k, ends[t])
                    if wanted == OK and k != 3:
                        assert np.array_equal(sinks[k].read(), alone[k]), k
                    elif wanted == OK:
                        assert np.abs(sinks[k].read() - alone[k]).max() < 1e-6 * np.abs(alone[k]).max()


@tap.test
def who_is_ahead_gets_the_next_slot(case):
    """Also where another's source has the only buffer."""
    noise = dict(source=qk.SOURCE_Z2, column=qk.Column(t=-1, spin=-1, colour=-1))
    with case.endless(slots=2) as e, Vector(case.shape, data=case.random(33)) as source:
        assert e.facts.inflight == 5
        begin = lambda slot, **more: e.fill(slot, 1e-13, max_iter=10**9, **more)
        for what in (noise, dict(shm_in=source.name)):
            serials = [begin(0, backlog=1, **noise), begin(1, **noise), begin(2, **what)]
            time.sleep(0.2)
            serials.append(begin(3, order=0, **what))
            time.sleep(0.2)
            e.send(cancel=pb.CancelFill(entry=0, serial=serials[0]))
            assert e.done()[serials[0]].status == CANCELLED
            name, body = e.receive()
            while body.serial not in serials[2:]:
                name, body = e.receive()
            assert body.serial == serials[3]
            for slot in (1, 2, 3):
                e.send(cancel=pb.CancelFill(entry=slot, serial=serials[slot]))
            assert len(e.done(3 - (name == 'fill_done'))) == 3 - (name == 'fill_done')


@tap.test
def without_staging_there_are_as_many_as_slots(case):
    b = case.random(210)
    with case.loaded(slots=2, staging=0) as e:
        assert e.facts.inflight == e.facts.slots == 2
        plain, end = e.solve(b, entry=1)
    with case.loaded(slots=2) as e:
        staged, other = e.solve(b, entry=1)
    assert end.status == other.status == OK and np.array_equal(plain, staged)


# ---- what goes wrong with one right-hand side -----------------------------------------------------


@tap.test
def bad_fills_touch_nobody(case):
    good = case.random(20)
    with case.loaded() as e:
        alone, _ = e.solve(good)
        with Vector(case.shape, data=good) as source, Vector(case.shape) as sink, \
                Vector(case.shape, bytes=100) as short:
            serial = e.fill(0, shm_in=source.name, shm_out=sink.name)
            bad = [dict(entry=1, shm_in='/no-such-object'), dict(entry=1, shm_in=short.name),
                   dict(entry=1, shm_in=source.name, shm_out=short.name), dict(entry=1),
                   dict(entry=1, shm_in=source.name, dtype=qk.DTYPE_F32), dict(entry=1, shm_in='/' + 'x' * 100),
                   dict(entry=e.facts.inflight, shm_in=source.name), dict(entry=1, shm_in=source.name, tol=0.0),
                   dict(entry=1, shm_in=source.name, tol=float('nan')), dict(entry=1, shm_in=source.name, max_iter=0),
                   dict(entry=1, shm_in=source.name, factor=0.0), dict(entry=1, source=qk.SOURCE_POINT),
                   dict(entry=1, source=qk.SOURCE_POINT, column=qk.Column(x=4)),
                   dict(entry=1, source=qk.SOURCE_POINT, column=qk.Column(t=-1)),
                   dict(entry=1, source=qk.SOURCE_POINT, column=qk.Column(spin=4)),
                   dict(entry=1, source=qk.SOURCE_WALL, column=qk.Column(t=8)),
                   dict(entry=1, source=qk.SOURCE_Z4, column=qk.Column(t=0, spin=-2))]
            ends = {}
            for fill in bad:
                t = e.fill(**fill)
                while t not in ends:
                    ends.update(e.done())
                assert ends[t].status == BAD_ARGUMENT and ends[t].text and not ends[t].written, (fill, ends[t])
            while serial not in ends:
                ends.update(e.done())
            assert ends[serial].status == OK
            assert np.array_equal(sink.read(), alone)


@tap.test
def a_slot_that_is_taken_is_not_given_twice(case):
    with case.loaded() as e:
        point = dict(source=qk.SOURCE_POINT, column=qk.Column(), tol=1e-12)
        first, second = e.fill(1, **point), e.fill(1, **point)
        ends = e.done(2)
        assert ends[first].status == OK
        # the first may have ended before the second was heard
        assert ends[second].status in (BAD_PROTOCOL, OK) and (ends[second].text != '') == (ends[second].status != OK)


@tap.test
def nan_and_zero_end_at_once(case):
    with case.loaded(slots=3) as e:
        good = case.random(21)
        alone, _ = e.solve(good, entry=1)
        nan = case.random(22)
        nan[3, 2, 1, 0, 1, 2] = np.nan
        vectors = [Vector(case.shape, data=v) for v in (nan, good, 0 * good)] + [Vector(case.shape) for _ in range(3)]
        try:
            serials = [e.fill(k, shm_in=vectors[k].name, shm_out=vectors[3 + k].name) for k in range(3)]
            ends = e.done(3)
            bad, fine, zero = (ends[t] for t in serials)
            assert bad.status == NAN_INPUT and not bad.written
            assert bad.text == 'the source is NaN or Inf at x y z t = 0 1 2 3, spin 1, colour 2', bad.text
            assert zero.status == OK and zero.iterations == 0 and not vectors[5].read().any()
            assert fine.status == OK and np.array_equal(vectors[4].read(), alone)
        finally:
            for v in vectors:
                v.__exit__()


def far(case, seed, exponent):
    return np.ldexp(case.random(seed).view(float), exponent).view(complex)


@tap.test
def sources_of_any_size_are_solved(case):
    """To the bit of the one in the middle, times the power of two: with every solver, and norms and residual are told."""
    solvers = [dict(solver='bicgstab'), dict(solver='cg'), dict(solver='gcr', inner='PRECISION_DOUBLE'), dict(solver='mg')]
    for solver in solvers[:4 if case.ranks == 1 else 1]:
        with case.loaded(slots=1, **solver) as e:
            middle, said = e.solve(far(case, 24, 100))
            assert said.status == OK and said.iterations > 0
            for exponent in -900, -545, 520, 1000:
                x, end = e.solve(far(case, 24, exponent))
                assert end.status == OK and end.true_residual == said.true_residual > 0, (solver, exponent, end)
                assert np.array_equal(x.view(float), np.ldexp(middle.view(float), exponent - 100)), (solver, exponent)
                assert end.norm_b == np.ldexp(said.norm_b, exponent - 100), (solver, exponent, end)
                assert abs(end.norm_x / np.ldexp(said.norm_x, exponent - 100) - 1) < 1e-12, (solver, exponent, end)


@tap.test
def what_numbers_cannot_hold_is_refused(case):
    """Sources and solutions, with the number and its place."""
    one = np.zeros(case.shape, complex)
    one[1, 2, 3, 0, 3, 1] = 1j
    there = 'at x y z t = 0 3 2 1, spin 3, colour 1'
    with case.loaded(slots=2) as e:
        for b, more, said in (
                (one * 1e-305, {}, 'the source is too small: its norm is 1e-305, its largest number 1e-305 ' + there),
                (case.random(3) * 1e304, dict(factor=1e5), 'the solution is too large: over 1.8e+308 at x y z t = '),
                (one * 1e-200, dict(factor=1e-110), 'the solution is too small for f64: at most'),
                (one * 1e-30, dict(dtype=qk.DTYPE_F32, factor=1e-20), 'the solution is too small for f32: at most'),
                (one * 1e30, dict(dtype=qk.DTYPE_F32, factor=1e20), 'the solution is too large for f32: ')):
            x, end = e.solve(b, **more)
            assert (end.status, end.written) == (BAD_ARGUMENT, False) and end.text.startswith(said), (end, said)
            assert not x.any()
        x, end = e.solve(one, dtype=qk.DTYPE_F32)
        assert end.status == OK and end.written and end.text == ''
        # another basis than the solver's
        one[1, 2, 3, 0, 3, 1] = np.nan
        x, end = e.solve(one, basis=qk.BASIS_UKQCD)
        assert end.status == NAN_INPUT and ' x y z t = 0 3 2 1, ' in end.text, end
        assert end.text.endswith('(of the source in the basis degrand-rossi)'), end
        # a source that is made of a solution
        with Vector(case.shape, data=far(case, 25, -700)) as held:
            x, end = e.generate(case.shape, qk.SOURCE_SEQUENTIAL, column=dict(gamma=15, t=2, spin=-1, colour=-1), shm_in=held.name)
            assert end.status == OK and end.iterations > 0 and x.any(), end


@tap.test
def a_miss_is_reported_as_a_miss(case):
    with case.loaded() as e:
        b = case.random(23)
        x, end = e.solve(b, tol=1e-12, max_iter=3)
        assert end.status == NOT_CONVERGED and end.written and 1e-12 < end.true_residual < 1
        assert abs(case.residual(x, b) - end.true_residual) < 1e-6 * end.true_residual


@tap.test
def cancel_ends_one_slot(case):
    with case.endless() as e:
        noise = dict(source=qk.SOURCE_Z2, column=qk.Column(t=-1, spin=-1, colour=-1), tol=1e-13, max_iter=10**9)
        first, second = e.fill(0, **noise), e.fill(1, **noise)
        progress = e.expect('fill_progress')
        assert progress.iterations > 0 and progress.serial in (first, second)
        e.send(cancel=pb.CancelFill(entry=0, serial=second))  # not in that slot: ignored
        e.send(cancel=pb.CancelFill(entry=1, serial=second))
        assert e.done()[second].status == CANCELLED
        e.send(cancel=pb.CancelFill(entry=1, serial=second))  # has ended: ignored
        third = e.fill(1, **noise)
        e.send(cancel=pb.CancelFill(entry=1, serial=third))   # perhaps before it has run at all
        assert e.done()[third].status == CANCELLED
        e.send(cancel=pb.CancelFill(entry=0, serial=first))
        end = e.done()[first]
        assert end.status == CANCELLED and not end.written
        assert e.stop() == 0


if __name__ == '__main__':
    import engine_process  # noqa: F401 (its tests run, too)
    tap.run(Case(*sys.argv[1:4]))
