#!/usr/bin/env python3
"""quarkd against an engine that only pretends: requests, credit, memory, lifetime: test_front_service.py QUARKD"""
import os
import sys
import tempfile

import tap

try:
    import numpy as np
    import zmq
    from front_case import LATER, Case, State, check_solves, fake, field, kill, once_more
    from front_driver import MIB, STATUS, UPLOAD, Client, checksum, frame, qk
    from state_case import results_of
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


# ---- requests ---------------------------------------------------------------------------------------

@tap.test
def solves_what_is_uploaded_and_returns_all_memory(case):
    with case.daemon() as d, Client(d) as c:
        fields = [field() for _ in range(20)]  # more than slots
        accepted = c.submit(20)
        assert accepted.field_bytes == 256 * 24 * 8 and accepted.upload_next == 0 and not accepted.repeated_submit
        assert d.status().memory_used >= 40 * accepted.field_bytes
        c.upload(accepted, fields, chunk=10007)
        for r in c.results(20):
            assert r.status == 0 and r.iterations == 3 and r.applications == 6 and r.norm_x == 2
            assert np.array_equal(c.fetch(r), 2 * fields[r.rhs])
        c.ack(1)
        # What a data thread has sent counts when it says so, which may be after the client has it.
        s = d.status_when(lambda s: s.counters.requests == 0 and s.counters.bytes_out == 20 * accepted.field_bytes)
        assert s.memory_used == 0 and s.counters.converged == 20 and s.counters.accepted == 1
        assert s.counters.bytes_in == 20 * accepted.field_bytes
        assert d.terminate() == 0


@tap.test
def solves_in_single_precision_and_by_generated_sources(case):
    with case.daemon() as d, Client(d) as c:
        b = field().astype(np.complex64)
        (r, x), = c.solve([b], np.complex64, dtype=qk.DTYPE_F32)
        assert r.status == 0 and np.array_equal(x, 2 * b)
        c.submit(3, source=qk.SOURCE_Z4, column=[qk.Column(seed=s, t=-1, spin=-1, colour=-1) for s in (5, 6, 7)])
        assert [c.fetch(r)[0].real for r in c.results(3)] == [5, 6, 7]
        c.ack(2)
        c.submit(2, source=qk.SOURCE_POINT, sink=qk.SINK_NONE)
        assert [(r.status, r.bytes, r.norm_x) for r in c.results(2)] == [(0, 0, 2)] * 2
        c.submit(1, normalisation=qk.NORMALISATION_KAPPA, source=qk.SOURCE_WALL, column=[qk.Column(seed=1)])
        x, = [c.fetch(r) for r in c.results(1)]
        assert abs(x[0] - 2 * (4 + 0.1) / 2) < 1e-12  # 1 / (2 kappa) = 4 + m


@tap.test
def an_idle_engine_is_told_how_many_come(case):
    """What is alone is solved alone: of those that go out together each says how many follow."""
    noise = qk.Column(t=-1, spin=-1, colour=-1)
    with case.daemon() as d, Client(d) as c:
        c.submit(3, source=qk.SOURCE_Z4, column=[noise] * 3)
        assert [c.fetch(r)[2].real for r in c.results(3)] == [2, 1, 0]
        c.submit(1, source=qk.SOURCE_Z4, column=[noise])
        assert [c.fetch(r)[2].real for r in c.results(1)] == [0]


@tap.test
def credit_bounds_uploads_and_downloads(case):
    with case.daemon(dims='16x16x8x16') as d, Client(d) as c:
        fields = [field(32768) for _ in range(3)]  # 6 MiB each
        total = sum(f.nbytes for f in fields)
        accepted = c.submit(3)
        assert 0 < accepted.upload_until < total
        c.upload(accepted, fields)
        results = c.results(3)
        r = results[1]
        c.send(grant=qk.Grant(request=1, rhs=1, until=MIB + 100))
        assert [c.chunk()['chunk_bytes'] for _ in range(2)] == [MIB, 100]
        c.ping()
        assert not c.data.poll(50)
        c.send(grant=qk.Grant(request=1, rhs=1, until=r.bytes, **{'from': 5 * MIB}))
        head = c.chunk()
        assert head['offset'] == 5 * MIB and head['field_checksum'] == checksum((2 * fields[1]).tobytes())
        assert head['payload'] == (2 * fields[1]).tobytes()[5 * MIB:]
        # two at a time take turns
        for k in (0, 2):
            c.send(grant=qk.Grant(request=1, rhs=k, until=r.bytes))
        order = [c.chunk()['rhs'] for _ in range(12)]
        assert order.count(0) == order.count(2) == 6 and len(set(order[2:8])) == 2, order


@tap.test
def the_same_request_again_is_executed_once(case):
    with case.daemon() as d, Client(d) as c:
        fields = [field(), field()]
        accepted = c.submit(2)
        half = accepted.field_bytes // 2
        c.data.send(frame(UPLOAD, 1, 0, fields[0].tobytes()[:half], accepted.field_bytes))
        d.status_when(lambda s: s.counters.bytes_in == half)
        again = c.submit(2, request=1)
        assert again.repeated_submit and again.upload_next == half
        c.upload(again, fields, chunk=half, begin=half)
        for r in c.results(2):
            assert np.array_equal(c.fetch(r), 2 * fields[r.rhs])
        c.ack(1, 0)
        assert c.submit(2, request=1).repeated_submit
        assert [r.rhs for r in c.results(1)] == [1]  # the other one is acknowledged
        rejected = c.submit(2, request=1, tol=1e-9, expect='rejected')
        assert rejected.status == STATUS['BAD_ARGUMENT']
        c.ack(1)
        rejected = c.submit(2, request=1, expect='rejected')
        assert rejected.status == STATUS['EXPIRED']
        s = d.status()
        assert s.counters.accepted == 1 and s.counters.converged == 2 and s.memory_used == 0


@tap.test
def rejections_name_their_reason(case):
    with case.daemon('--max-memory', '1M') as d, Client(d) as c:
        point = dict(source=qk.SOURCE_POINT)
        for status, more in [('BAD_ARGUMENT', dict(nrhs=0)), ('TOO_LARGE', dict(nrhs=1025)),
                             ('BAD_ARGUMENT', dict(tol=0)), ('BAD_ARGUMENT', dict(max_iter=0)),
                             ('NOT_FOUND', dict(setup='other')), ('TOO_LARGE', dict(nrhs=12)),
                             ('BAD_ARGUMENT', dict(column=[qk.Column()])),
                             ('BAD_ARGUMENT', dict(point, column=[qk.Column(x=4)])),
                             ('BAD_ARGUMENT', dict(point, column=[qk.Column(t=-1)])),
                             ('BAD_ARGUMENT', dict(point, column=[qk.Column(spin=4)]))]:
            r = c.submit(expect='rejected', **more)
            assert r.status == STATUS[status] and r.text and r.retry_after_ms == 0, (more, r)
        first = c.submit(6)
        r = c.submit(6, expect='rejected')
        assert r.status == STATUS['BUSY'] and r.retry_after_ms > 0
        c.send(cancel=qk.Cancel(request=first.request))
        c.results(6)
        c.ack(first.request)
        c.submit(6)
        assert d.status().counters.rejected == 11


@tap.test
def nothing_is_taken_before_the_setup_is_there(case):
    with case.daemon(env={'FAKE_LOAD': 'mute'}, wait='engine started') as d, Client(d) as c:
        s = d.status_when(lambda s: s.state == qk.STATE_LOADING)
        assert not s.setup.dims and not s.setup.HasField('plaquette') and s.setup.mass == 0.1
        r = c.submit(expect='rejected')
        assert r.status == STATUS['NOT_READY'] and r.retry_after_ms > 0


@tap.test
def the_status_tells_all(case):
    with case.daemon('--csw', '1.5', '--boundary', '1,-1,0.5pi,1', dims='4x6x8x10') as d:
        s = d.status()
        assert s.state == qk.STATE_READY and s.pid == d.process.pid and s.memory_limit > 0
        assert list(s.setup.dims) == [4, 6, 8, 10] and s.setup.plaquette == 0.5 and s.setup.digest == 7
        assert np.allclose(s.setup.boundary, [1, 0, -1, 0, 0, 1, 1, 0]) and abs(s.setup.kappa - 1 / 8.2) < 1e-15
        assert (s.engine.backend, s.engine.device, s.engine.slots, s.engine.restarts) == ('cpu', 'fake', 16, 0)


@tap.test
def multigrid_is_set_and_reported(case):
    with case.daemon('--solver', 'mg', '--mg-vectors', '32', '--mg-checkpoint', 'here/mg') as d:
        s = d.status_when(lambda s: s.setup.multigrid.refined == 1)
        mg = s.setup.multigrid
        assert s.setup.solver == 'mg' and [l.vectors for l in mg.level] == [32, 0] and mg.level[0].galerkin == 1e-6
        assert mg.checkpoint == os.path.join(os.getcwd(), 'here/mg') and mg.checkpoint_written
        assert (s.engine.memory.serving, s.engine.memory.share[0].name, s.setup.link_reals) == (5, 'solver', 12)
    with case.daemon('--solver', 'auto') as d:
        s = d.status()
        assert s.setup.solver == 'bicgstab' and not s.setup.HasField('multigrid')
    with case.daemon('--solver', 'mg', '--mg-checkpoint', 'off') as d:
        assert not d.status().setup.multigrid.HasField('checkpoint')


# ---- ends -------------------------------------------------------------------------------------------

@tap.test
def cancel_ends_what_is_queued_running_or_uploading(case):
    with case.daemon('--slots', '1') as d, Client(d) as c:
        c.submit(3, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 1 and s.counters.queued == 2)
        c.send(cancel=qk.Cancel(request=1, rhs=[1]))
        r = c.expect('result')
        assert (r.rhs, r.status, r.bytes) == (1, STATUS['CANCELLED'], 0)
        c.send(cancel=qk.Cancel(request=1))
        assert {r.rhs: r.status for r in c.results(2)} == {0: STATUS['CANCELLED'], 2: STATUS['CANCELLED']}
        c.ack(1)
        accepted = c.submit(2)
        c.send(cancel=qk.Cancel(request=2))
        c.results(2)
        c.upload(accepted, [field(), field()])  # what was on its way is taken and thrown away
        c.ack(2)
        c.upload(accepted, [field(), field()])
        check_solves(c)
        assert d.status_when(lambda s: s.counters.requests == 0).memory_used == 0


@tap.test
def deadlines_end_what_is_left(case):
    with case.daemon('--slots', '1') as d, Client(d) as c:
        c.submit(2, source=qk.SOURCE_POINT, max_iter=fake.HOLD, deadline_ms=200)
        assert [r.status for r in c.results(2)] == [STATUS['DEADLINE']] * 2
        c.submit(1, deadline_ms=100)  # nothing is ever uploaded
        assert c.expect('result').status == STATUS['DEADLINE']
        c.ack(1)
        check_solves(c)


@tap.test
def progress_comes_while_slots_run(case):
    with case.daemon() as d, Client(d) as c:
        c.submit(2, source=qk.SOURCE_POINT, max_iter=fake.PROGRESS)
        p = c.expect('progress', skip=())
        while not (len(p.running) == 2 and all(r.iterations == 49 for r in p.running)):
            p = c.expect('progress', skip=())
        assert p.ended == 0 and p.queued == 0 and abs(p.running[0].residual - 1 / 50) < 1e-12
        c.send(cancel=qk.Cancel(request=1))
        c.results(2)
        assert d.status().state == qk.STATE_READY


@tap.test
def one_of_a_user_goes_before_many_of_another(case):
    with case.daemon('--slots', '1') as d, Client(d, user='ada') as a, Client(d, user='bob') as b:
        a.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 1)
        a.submit(30, source=qk.SOURCE_POINT, sink=qk.SINK_NONE)
        b.submit(1, source=qk.SOURCE_POINT, sink=qk.SINK_NONE, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.queued == 31)
        a.send(cancel=qk.Cancel(request=1))
        d.status_when(lambda s: s.counters.running == 1 and s.counters.converged == 0 and s.counters.queued == 30)
        b.send(cancel=qk.Cancel(request=1))
        assert len(a.results(31)) == 31


@tap.test
def priorities_and_deadlines_decide_among_ones_own(case):
    with case.daemon('--slots', '1') as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 1)
        for more in ({}, dict(priority=0), dict(deadline_ms=3600000), dict(priority=9), dict(deadline_ms=1800000)):
            c.submit(2, source=qk.SOURCE_POINT, sink=qk.SINK_NONE, **more)
        d.status_when(lambda s: s.counters.queued == 10)
        c.send(cancel=qk.Cancel(request=1))
        order = [c.expect('result').request for _ in range(11)]
        assert order == [1, 5, 5, 6, 6, 4, 4, 2, 2, 3, 3], order
        refused = c.submit(1, source=qk.SOURCE_POINT, priority=10, expect='rejected')
        assert refused.status == STATUS['BAD_ARGUMENT'] and 'priority = 10' in refused.text


def refused(reply, status, *words):
    assert reply.status == STATUS[status] and all(w in reply.text for w in words), reply
    assert (reply.retry_after_ms > 0) == (status == 'BUSY'), reply


@tap.test
def a_free_slot_is_filled_at_once_unless_batches_are_fixed(case):
    point = dict(source=qk.SOURCE_POINT, sink=qk.SINK_NONE, max_iter=fake.HOLD)
    for batching, queued in (('continuous', 2), ('fixed', 3)):
        with case.daemon('--slots', '3', '--batching', batching) as d, Client(d) as c:
            c.submit(3, **point)
            c.submit(3, **point)
            d.status_when(lambda s: (s.counters.running, s.counters.queued) == (3, 3) and s.occupancy.saturated > 0.005)
            c.send(cancel=qk.Cancel(request=1, rhs=[0]))
            assert c.expect('result').status == STATUS['CANCELLED']
            s = c.status()
            assert (s.counters.running, s.counters.queued) == (5 - queued, queued), (batching, s.counters)
            assert s.occupancy.saturated > 0 and s.occupancy.moving + s.occupancy.solving > 0
            if batching == 'fixed':  # a slot is empty, and something waits
                d.status_when(lambda s: s.occupancy.idle > 0.02)
            else:
                assert s.occupancy.idle == 0
            c.send(cancel=qk.Cancel(request=1))
            c.results(2)
            d.status_when(lambda s: (s.counters.running, s.counters.queued) == (3, 0))
    assert case.run('--gauge', 'x', '--mass', '0.1', '--batching', 'sometimes').returncode == 64


@tap.test
def one_of_another_user_gets_the_next_free_slot(case):
    """However much one user has in the queue, another waits for a single slot to end."""
    many = dict(source=qk.SOURCE_POINT, sink=qk.SINK_NONE, max_iter=fake.HOLD)
    with case.daemon('--slots', '4') as d, Client(d, user='ada') as a, Client(d, user='bob') as b:
        a.submit(1000, **many)
        d.status_when(lambda s: (s.counters.running, s.counters.queued) == (4, 996))
        b.submit(1, source=qk.SOURCE_POINT, sink=qk.SINK_NONE)
        d.status_when(lambda s: s.counters.queued == 997)
        a.send(cancel=qk.Cancel(request=1, rhs=[2]))
        assert b.expect('result').status == 0
        assert a.expect('result').status == STATUS['CANCELLED']
        s = d.status_when(lambda s: s.counters.running == 4)
        assert (s.counters.queued, s.counters.converged, s.counters.cancelled) == (995, 1, 1), s.counters


@tap.test
def the_last_place_behind_the_slots_is_for_who_has_none(case):
    """And goes ahead of what waits in the engine."""
    point = dict(source=qk.SOURCE_POINT)
    with case.daemon('--slots', '2', env={'FAKE_INFLIGHT': '6'}) as d, Client(d, user='ada') as a, Client(d, user='bob') as b:
        a.submit(1000, max_iter=fake.HOLD, sink=qk.SINK_NONE, **point)
        d.status_when(lambda s: (s.counters.running, s.counters.queued) == (5, 995))
        b.submit(1, **point)
        r, = b.results(1)
        assert r.status == 0 and b.fetch(r)[3] == 0  # its order
        a.submit(1, priority=9, **point)
        a.send(cancel=qk.Cancel(request=1, rhs=[0]))
        done = [x for x in a.results(2) if x.request == 2]
        assert done[0].status == 0 and a.fetch(done[0])[3] == 1


@tap.test
def a_user_has_so_many_right_hand_sides(case):
    point = dict(source=qk.SOURCE_POINT, sink=qk.SINK_NONE)
    with case.daemon('--user-rhs', '5', '--slots', '1') as d, Client(d, user='ada') as a, Client(d, user='ada') as same, \
            Client(d, user='bob') as other:
        a.submit(3, max_iter=fake.HOLD, **point)
        refused(same.submit(3, request=1, expect='rejected', **point), 'BUSY', 'user-rhs', '3', '5')
        refused(same.submit(6, request=1, expect='rejected', **point), 'TOO_LARGE', 'user-rhs', '6', '5')
        same.submit(2, request=1, max_iter=fake.HOLD, **point)
        refused(a.submit(1, request=2, expect='rejected', **point), 'BUSY', 'user-rhs')
        other.submit(5, **point)
        a.send(cancel=qk.Cancel(request=1))
        a.results(3)
        a.submit(3, request=2, max_iter=fake.HOLD, **point)
        a.send(goodbye=qk.Goodbye())
        d.status_when(lambda s: s.counters.sessions == 2)
        same.submit(3, request=2, **point)  # what goes with its session is not counted any more
        same.send(cancel=qk.Cancel(request=1))
        same.results(5)
        other.results(5)


@tap.test
def a_user_has_so_much_memory(case):
    one = 2 * 256 * 24 * 8  # source and solution
    with case.daemon('--user-memory', str(5 * one)) as d, Client(d, user='ada') as a, Client(d, user='bob') as other:
        a.submit(3)
        refused(a.submit(2, request=2, expect='rejected'), 'BUSY', 'user-memory', str(5 * one))
        refused(a.submit(5, request=2, expect='rejected'), 'TOO_LARGE', 'user-memory')
        check_solves(other, 4)
        a.send(cancel=qk.Cancel(request=1))
        a.results(3)
        a.ack(1)
        a.submit(4, request=2)
        a.send(cancel=qk.Cancel(request=2))
        a.results(4)
        a.ack(2)
        assert d.status_when(lambda s: s.counters.requests == 0).memory_used == 0


@tap.test
def a_silent_client_is_dropped_with_its_requests(case):
    with case.daemon('--lease', '0.3', '--slots', '1') as d, Client(d) as c:
        c.submit(3, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        assert c.welcome.lease_ms == 300
        c.error('EXPIRED')
        s = d.status_when(lambda s: s.counters.sessions == 0 and s.counters.running == 0)
        assert s.memory_used == 0 and s.counters.cancelled == 3
        c.send(ping=qk.Ping())
        c.error('NOT_FOUND')


@tap.test
def a_client_that_dies_leaves_nothing_wherever_it_was(case):
    """Uploading, queued, solving, downloading, all at once: nobody says goodbye."""
    with case.daemon('--lease', '0.5', '--slots', '1') as d:
        c = Client(d)
        done = c.submit(1, source=qk.SOURCE_POINT)
        r = c.expect('result')
        c.send(grant=qk.Grant(request=done.request, rhs=0, until=1000))
        assert c.chunk()['chunk_bytes'] == 1000 < r.bytes
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 1)
        c.submit(1, source=qk.SOURCE_POINT)
        upload = c.submit(2)
        c.data.send(frame(UPLOAD, upload.request, 0, b'x' * 1000, upload.field_bytes, 0))
        s = d.status_when(lambda s: s.counters.bytes_in == 1000)
        assert (s.counters.running, s.counters.queued, s.counters.held) == (1, 1, 1) and s.memory_used > 0, s
        c.close()
        s = d.status_when(lambda s: s.counters.sessions == 0 and s.counters.running == 0)
        assert s.memory_used == 0 and s.counters.requests == 0, s
        with Client(d) as other:
            check_solves(other)


@tap.test
def goodbye_frees_everything(case):
    with case.daemon() as d, Client(d) as c:
        c.submit(3, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        c.submit(3)
        c.send(goodbye=qk.Goodbye())
        s = d.status_when(lambda s: s.counters.sessions == 0 and s.counters.running == 0)
        assert s.memory_used == 0


@tap.test
def solutions_that_nobody_fetches_go_after_a_time(case):
    with case.daemon('--fetch-time', '0.2') as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT)
        r = c.expect('result')
        d.status_when(lambda s: s.memory_used < r.bytes)
        c.send(grant=qk.Grant(request=1, rhs=0, until=r.bytes))
        assert c.error('EXPIRED', fatal=False).request == 1


@tap.test
def a_lost_connection_is_resumed(case):
    with case.daemon('--slots', '1') as d, Client(d) as watch:
        fields = [field(), field()]
        with Client(d) as c:
            accepted = c.submit(2)
            c.upload(accepted, fields[:1])
            c.expect('result')
            token = c.welcome.token
        with Client(d, client_id=c.client_id) as again:
            assert again.welcome.resumed and again.welcome.token != token
            repeated = again.submit(2, request=1)
            assert repeated.upload_next == accepted.field_bytes
            first = again.expect('result')
            again.upload(repeated, fields, begin=repeated.upload_next)
            for r in (first, again.expect('result')):
                assert np.array_equal(again.fetch(r), 2 * fields[r.rhs])
        assert not watch.hello().resumed is False  # HELLO again on the same connection keeps the session


@tap.test
def a_taken_over_connection_is_a_stranger(case):
    with case.daemon() as d, Client(d) as old, Client(d, client_id=old.client_id) as new:
        old.send(ping=qk.Ping())
        old.error('NOT_FOUND')
        check_solves(new)


@tap.test
def status_tells_what_goes_on_where_it_is_asked(case):
    with case.daemon('--slots', '3') as d, Client(d, user='ann') as a, Client(d, user='\x1b[2Jbob\u2603') as b, Client(d, user='idle'):
        a.submit(5, source=qk.SOURCE_POINT, max_iter=fake.PROGRESS, tol=1e-6)
        b.submit(2, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        report = d.status_when(lambda s: len(s.activity.slot) == 3 and any(x.iterations == 49 for x in s.activity.slot), activity=True)
        slots, users = report.activity.slot, {u.name: u for u in report.activity.user}
        assert [x.slot for x in slots] == [0, 1, 2] and all(x.job.endswith('/1') and 0 <= x.seconds < 20 for x in slots)
        one = next(x for x in slots if x.iterations == 49)
        assert one.user == 'ann' and one.tol == 1e-6 and one.residual == 1 / 50, one
        assert set(users) == {'ann', '?[2Jbob\u2603', 'idle'} and users['idle'].work == 0, users
        assert sum(u.running for u in users.values()) == 3 and sum(u.queued for u in users.values()) == 4
        assert users['ann'].memory > users['idle'].memory == 0 and users['ann'].work > 0
        assert report.activity.user[2].name == 'idle' and report.activity.users_left_out == 0
        assert not d.status().HasField('activity')


@tap.test
def status_of_very_many_users_fits_into_a_message(case):
    def join(d, n):
        """n clients with names of the greatest length, that stay."""
        for i in range(n):
            s = d.context.socket(zmq.DEALER)
            s.setsockopt(zmq.LINGER, 0)
            s.connect(d.endpoint)
            hello = qk.Hello(version=1, client_id=os.urandom(16), user='%064d' % i)
            s.send(qk.ClientMessage(hello=hello).SerializeToString())
            assert s.poll(20000)
            yield s
    for bulk, shown in (('0', range(256, 257)), ('50000', range(50, 200))):
        with case.daemon(env={'FAKE_BULK': bulk}) as d:
            held = list(join(d, 300))
            activity = d.status_when(lambda s: True, activity=True).activity
            assert len(activity.user) in shown, len(activity.user)
            assert activity.users_left_out == 300 - len(activity.user), activity.users_left_out
            for s in held:
                s.close()


@tap.test
def listens_on_ipc_too(case):
    with tempfile.TemporaryDirectory() as folder:
        with case.daemon('--listen', 'ipc://%s/q' % folder) as d, Client(d) as c:
            check_solves(c)


@tap.test
def what_a_dead_front_left_behind_is_swept_up(case):
    with case.daemon() as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT)
        c.expect('result')
        left = '/dev/shm/quarkd-%d-' % d.process.pid
        d.process.kill()
        d.process.wait()
        assert any(('/dev/shm/' + n).startswith(left) for n in os.listdir('/dev/shm'))
    with case.daemon() as d:
        assert not any(('/dev/shm/' + n).startswith(left) for n in os.listdir('/dev/shm'))


@tap.test
def a_thousand_requests_leave_memory_where_it_was(case):
    def resident(pid):
        with open('/proc/%d/statm' % pid, encoding='utf-8') as f:
            return int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
    with case.daemon() as d, Client(d) as c:
        b = field()
        sizes = []
        for i in range(1000):
            accepted = c.submit(1)
            c.upload(accepted, [b])
            r = c.expect('result')
            c.fetch(r)
            c.ack(accepted.request)
            if i % 500 == 499:
                sizes.append(resident(d.process.pid))
        assert sizes[1] - sizes[0] < 2 * MIB, sizes
        assert d.status_when(lambda s: s.counters.requests == 0).memory_used == 0


# ---- when a solve has converged, and which solver it may go to ------------------------------------------

def ask(c, **more):
    """What the engine was told of a request, and its RESULT."""
    c.submit(1, source=qk.SOURCE_POINT, **more)
    r = c.expect('result', skip=('progress', 'accepted'))
    x = c.fetch(r) if r.bytes else np.zeros(9)
    return [x[i].real for i in range(5, 9)], r


@tap.test
def the_engine_is_told_all_tolerances_and_the_solver(case):
    with case.daemon() as d, Client(d) as c:
        assert {5, 12} <= set(c.welcome.feature)
        for tol, more in ((1e-8, {}), (0, dict(tol_hq=1e-5)), (0, dict(tol_abs=3e5)), (1e-3, dict(tol_hq=7, tol_abs=1e-30, single_rhs=False)),
                          (1e-3, dict(tol_hq=0, tol_abs=0, single_rhs=True))):
            told, r = ask(c, tol=tol, **more)
            assert told == [tol, more.get('tol_abs', 0), more.get('tol_hq', 0), more.get('single_rhs', True)], told
            assert r.status == 0 and r.HasField('hq_residual') == (more.get('tol_hq', 0) > 0), r
            assert r.hq_residual == more.get('tol_hq', 0) / 2, r
        s = d.status_when(lambda s: s.counters.converged == 5)
        assert s.counters.queued == s.counters.running == 0


@tap.test
def an_engine_is_not_believed_what_its_own_numbers_deny(case):
    with case.daemon() as d, Client(d) as c:
        for more in dict(tol_hq=1e-5, max_iter=fake.BAD_HQ), dict(tol_hq=1e-5, tol=1e-8, max_iter=fake.NO_HQ), dict(tol_abs=0.4, max_iter=fake.OVERSTATE):
            _, r = ask(c, **dict(dict(tol=0), **more))
            assert r.status == STATUS['NOT_CONVERGED'], r
            assert r.HasField('hq_residual') == (more['max_iter'] == fake.BAD_HQ), r
        assert ask(c, tol=0, tol_abs=0.6, max_iter=fake.OVERSTATE)[1].status == 0


@tap.test
def tolerances_that_are_none_are_refused_by_name(case):
    nan, inf = float('nan'), float('inf')
    with case.daemon() as d, Client(d) as c:
        for text, tol, more in (
                ('tol = 0: must be between 0 and 1, or 0 beside a tol_abs or tol_hq', 0, {}),
                ('tol = 0: must be between 0 and 1, or 0 beside a tol_abs or tol_hq', 0, dict(tol_abs=0, tol_hq=0)),
                ('tol = -1: must be between 0 and 1', -1, dict(tol_hq=1e-5)), ('tol = 1: must be between 0 and 1', 1, dict(tol_abs=1)),
                ('tol_hq = -1e-05: must be finite, and at least 0 (not asked for)', 1e-8, dict(tol_hq=-1e-5)),
                ('tol_hq = inf: must be finite, and at least 0 (not asked for)', 0, dict(tol_hq=inf)),
                ('tol_abs = nan: must be finite, and at least 0 (not asked for)', 1e-8, dict(tol_abs=nan))):
            r = c.submit(1, source=qk.SOURCE_POINT, tol=tol, expect='rejected', **more)
            assert r.status == STATUS['BAD_ARGUMENT'] and r.text == text, r
        assert ask(c, tol=1e-8)[1].status == 0


@tap.test
def the_journal_keeps_tolerances_and_residuals(case):
    with State(case) as state:
        with state.daemon('--slots', '1') as d, Client(d) as c:
            first, second = dict(tol=0, tol_hq=1e-3), dict(tol=0, tol_abs=2, tol_hq=1e-4, single_rhs=False, max_iter=fake.HOLD_ONCE)
            assert ask(c, **first)[1].hq_residual == 5e-4
            c.submit(1, source=qk.SOURCE_POINT, **second)
            d.status_when(lambda s: s.counters.running == 1)
            kill(d)
        with state.daemon('--slots', '1', env=LATER) as d, Client(d, c.client_id) as c2:
            for request, more, hq in (1, first, 5e-4), (2, second, 5e-5):
                once_more(c2, 1, request, source=qk.SOURCE_POINT, **more)
                r, = results_of(c2, request, 1)
                assert r.status == 0 and r.hq_residual == hq, r
            assert list(c2.fetch(r)[5:9].real) == [0, 2, 1e-4, 0]


if __name__ == '__main__':
    import service_ends  # noqa: F401 (its tests run, too)
    tap.run(Case(sys.argv[1]))
