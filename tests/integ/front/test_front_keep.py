#!/usr/bin/env python3
"""quarkd with solutions kept by handle, and what is made of them: test_front_keep.py QUARKD"""
import os
import signal
import sys

import tap

try:
    import numpy as np
    from front_case import Case, check_solves, fake, field
    from front_driver import STATUS, Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

FIELD = 256 * 24 * 8  # bytes of a solution in double precision
MESON = [qk.Channel(kind=qk.CHANNEL_MESON)]


def through(request, rhs=0, gamma=0, **more):
    return dict(source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=request, rhs=rhs, gamma=gamma, **more)])


def rejected(reply, status, *words):
    assert reply.status == STATUS[status], reply
    assert all(w in reply.text for w in words), reply.text


# ---- keeping ----------------------------------------------------------------------------------------

@tap.test
def kept_solutions_stay_after_ack_until_they_are_released(case):
    with case.daemon() as d, Client(d) as c:
        b = field()
        accepted = c.submit(1, sink=qk.SINK_KEEP)
        c.upload(accepted, [b])
        r = c.expect('result')
        assert np.array_equal(c.fetch(r), 2 * b)  # like DOWNLOAD
        c.ack(1)
        s = d.status_when(lambda s: s.counters.held == 0)
        assert (s.counters.kept, s.counters.kept_bytes, s.counters.requests) == (1, FIELD, 1)
        assert FIELD <= s.memory_used < 2 * FIELD
        for gamma in (0, 8):
            c.submit(1, **through(1, gamma=gamma))
            assert np.array_equal(c.fetch(c.expect('result')), (gamma + 1) * 2 * b)
            c.ack(c.request)
        c.send(release=qk.Release(request=1))
        s = d.status_when(lambda s: s.counters.requests == 0)
        assert s.memory_used == 0 and s.counters.kept == s.counters.kept_bytes == 0
        rejected(c.submit(1, expect='rejected', **through(1)), 'NOT_FOUND', 'column 0', 'request 1')
        c.send(release=qk.Release(request=1))  # it is over: nothing happens
        c.ping()
        check_solves(c)


@tap.test
def a_source_may_go_through_solutions_of_another_precision(case):
    with case.daemon() as d, Client(d) as c:
        b = field().astype(np.complex64)
        c.upload(c.submit(1, sink=qk.SINK_KEEP, dtype=qk.DTYPE_F32), [b])
        c.expect('result')
        c.submit(1, dtype=qk.DTYPE_F64, **through(1, gamma=2))
        assert np.array_equal(c.fetch(c.expect('result')), 6 * b.astype(complex))


@tap.test
def references_that_lead_nowhere_are_refused(case):
    with case.daemon() as d, Client(d) as c, Client(d) as other:
        kept = c.keep(2)
        plain = c.submit(1, source=qk.SOURCE_POINT).request
        c.expect('result')
        running = c.submit(1, source=qk.SOURCE_POINT, sink=qk.SINK_KEEP, max_iter=fake.HOLD).request
        failed = c.submit(1, source=qk.SOURCE_POINT, sink=qk.SINK_KEEP, max_iter=fake.OVERSTATE).request
        c.expect('result')
        ukqcd = c.keep(1, basis=qk.BASIS_UKQCD)
        for status, request, rhs, word in [('NOT_FOUND', 99, 0, 'request 99'), ('NOT_FOUND', plain, 0, 'SINK_KEEP'),
                                           ('BAD_ARGUMENT', kept, 2, 'rhs = 2'), ('BAD_ARGUMENT', running, 0, 'not ended'),
                                           ('BAD_ARGUMENT', failed, 0, 'NOT_CONVERGED'), ('BAD_ARGUMENT', ukqcd, 0, 'basis')]:
            rejected(c.submit(1, expect='rejected', **through(request, rhs)), status, 'column 0', word)
        rejected(other.submit(1, expect='rejected', **through(kept)), 'NOT_FOUND', 'request %d' % kept)
        columns = [qk.Column(request=kept), qk.Column(request=kept, rhs=1), qk.Column(request=kept, rhs=5)]
        rejected(c.submit(3, source=qk.SOURCE_SEQUENTIAL, column=columns, expect='rejected'), 'BAD_ARGUMENT', 'column 2')
        for status, a, more, word in [('NOT_FOUND', 99, {}, 'request_a'), ('BAD_ARGUMENT', kept, {}, 'request_a: rhs = 11'),
                                      ('BAD_ARGUMENT', ukqcd, dict(first_a=1000), 'rhs = 1011')]:
            rejected(c.contract(a, expect='rejected', **more), status, word)
        full, wrong = c.keep(), c.keep(12, basis=qk.BASIS_UKQCD)
        rejected(c.contract(full, request_b=wrong, expect='rejected'), 'BAD_ARGUMENT', 'request_b', 'basis')
        rejected(c.contract(full, request_b=full, first_b=1, expect='rejected'), 'BAD_ARGUMENT', 'request_b: rhs = 12')
        for k in (kept, full, wrong, ukqcd, failed, plain, running):
            c.send(release=qk.Release(request=k))
        s = d.status_when(lambda s: s.counters.requests == 0 and s.counters.running == 0)
        assert s.memory_used == 0, s  # nothing is held by what was refused


@tap.test
def a_release_waits_for_what_uses_the_solution(case):
    with case.daemon('--slots', '1') as d, Client(d) as c:
        c.keep(1)
        c.submit(1, max_iter=fake.HOLD, **through(1))
        d.status_when(lambda s: s.counters.running == 1)
        queued = c.submit(1, **through(1, gamma=4)).request
        c.send(release=qk.Release(request=1))
        rejected(c.submit(1, expect='rejected', **through(1)), 'NOT_FOUND')  # for new requests it is gone
        assert d.status().counters.kept == 1
        c.send(cancel=qk.Cancel(request=2))
        results = {r.request: r for r in (c.expect('result') for _ in range(2))}
        assert results[2].status == STATUS['CANCELLED']
        assert c.fetch(results[queued])[0] == 5
        d.status_when(lambda s: s.counters.kept == 0)
        for k in results:
            c.ack(k)
        assert d.status_when(lambda s: s.counters.requests == 0).memory_used == 0


@tap.test
def a_release_ends_what_has_not_ended(case):
    with case.daemon('--slots', '1') as d, Client(d) as c:
        c.submit(3, source=qk.SOURCE_POINT, sink=qk.SINK_KEEP, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 1)
        c.send(release=qk.Release(request=1))
        s = d.status_when(lambda s: s.counters.cancelled == 3)
        assert s.memory_used == 0 and s.counters.requests == 0
        c.send(release=qk.Release(request=7))
        assert c.error('NOT_FOUND', fatal=False).request == 7
        check_solves(c)


@tap.test
def kept_solutions_expire_after_their_last_use(case):
    with case.daemon('--keep-time', '2') as d, Client(d) as c:
        rejected(c.submit(1, source=qk.SOURCE_POINT, sink=qk.SINK_KEEP, keep_ms=2001, expect='rejected'), 'BAD_ARGUMENT',
                 'keep_ms = 2001', '2000')
        kept = c.keep(1)             # not acknowledged: its RESULT stays
        c.ack(c.keep(1, keep_ms=50))  # acknowledged: nothing of it stays
        user = c.submit(1, max_iter=fake.HOLD, **through(kept)).request
        d.status_when(lambda s: s.counters.kept == 1 and s.counters.requests == 2)
        c.ack(c.keep(1))
        d.status_when(lambda s: s.counters.kept == 1 and s.counters.requests == 2)
        c.send(grant=qk.Grant(request=kept, rhs=0, until=1))
        assert len(c.chunk()['payload']) == 1  # the later one has expired; this one has not, as it is in use
        c.send(cancel=qk.Cancel(request=user))
        c.expect('result')
        s = d.status_when(lambda s: s.counters.kept == 0)
        assert s.counters.requests == 2  # both have a RESULT that is not acknowledged
        rejected(c.submit(1, expect='rejected', **through(kept)), 'NOT_FOUND', 'expired')
        c.send(grant=qk.Grant(request=kept, rhs=0, until=FIELD))
        assert c.error('EXPIRED', fatal=False).request == kept
        c.ack(kept)
        c.ack(user)
        assert d.status_when(lambda s: s.counters.requests == 0).memory_used == 0


@tap.test
def a_user_keeps_no_more_than_the_quota(case):
    with case.daemon('--keep-memory', str(3 * FIELD)) as d, Client(d, user='ada') as a, Client(d, user='ada') as again, \
            Client(d, user='bob') as b:
        point = dict(source=qk.SOURCE_POINT, sink=qk.SINK_KEEP)
        rejected(a.submit(4, expect='rejected', **point), 'TOO_LARGE', str(4 * FIELD), str(3 * FIELD), 'keep-memory')
        kept = a.keep(2)
        r = again.submit(2, expect='rejected', **point)  # the quota is the user's, not the client's
        rejected(r, 'BUSY', str(FIELD), str(3 * FIELD), 'release')
        assert r.retry_after_ms > 0
        again.submit(2, source=qk.SOURCE_POINT)  # what is not kept is not under it
        again.results(2)
        b.keep(3)
        again.keep(1)
        a.send(release=qk.Release(request=kept))
        d.status_when(lambda s: s.counters.kept == 4)
        again.keep(2)
        for c in (a, again, b):
            c.send(goodbye=qk.Goodbye())
        s = d.status_when(lambda s: s.counters.sessions == 0)
        assert s.memory_used == 0 and s.counters.kept == 0
        with Client(d, user='ada') as c:
            c.keep(3)


@tap.test
def kept_solutions_count_as_memory_and_not_as_work(case):
    with case.daemon('--max-memory', str(3 * FIELD)) as d, Client(d) as c:
        c.keep(2)
        c.ack(1)
        rejected(c.submit(1, expect='rejected'), 'BUSY', 'max-memory')
        c.send(shutdown=qk.Shutdown())
        assert d.wait() == 0  # nothing is left to do


@tap.test
def the_same_kept_request_again_is_executed_once(case):
    with case.daemon() as d, Client(d) as c:
        c.keep(2)
        c.ack(1, 0)
        again = dict(source=qk.SOURCE_Z2, sink=qk.SINK_KEEP, column=[qk.Column(seed=i + 1) for i in range(2)])
        assert c.submit(2, request=1, **again).repeated_submit
        assert c.expect('result').rhs == 1
        assert d.status().counters.accepted == 1


@tap.test
def a_resumed_session_still_has_what_it_kept(case):
    with case.daemon() as d:
        with Client(d) as c:
            c.keep(12)
            c.ack(1)
            c.ping()
        with Client(d, client_id=c.client_id) as again:
            again.request = 1
            again.contract(1)
            assert again.expect('result').status == 0


# ---- sources ----------------------------------------------------------------------------------------

@tap.test
def smearing_and_the_rest_of_a_source_reach_the_engine(case):
    with case.daemon() as d, Client(d) as c:
        smear = qk.Smearing(alpha=0.5, steps=3, links=qk.LINK_SMEAR_HYP, link_param=[0.75, 0.6, 0.3], link_steps=2)
        columns = [qk.Column(seed=7, t=1, px=-3, pz=2, t_every=2, spin=-1, colour=-1)]
        c.submit(1, source=qk.SOURCE_Z2, column=columns, smear=smear)
        assert list(c.fetch(c.expect('result'))[:2]) == [7, 0.5]
        smear.steps = 0
        c.submit(1, source=qk.SOURCE_Z2, column=columns, smear=smear)
        assert list(c.fetch(c.expect('result'))[:2]) == [7, 0]
        for word, more in [('alpha = 11', dict(alpha=11)), ('links', dict(link_param=[1.0])), ('steps = 1001', dict(steps=1001))]:
            bad = qk.Smearing()
            bad.CopyFrom(smear)
            for name in more:
                bad.ClearField(name)
            bad.MergeFrom(qk.Smearing(**more))
            if 'link_param' in more:
                bad.links = qk.LINK_SMEAR_NONE
            reply = c.submit(1, source=qk.SOURCE_Z2, column=columns, smear=bad, expect='rejected')
            assert reply.status in (STATUS['BAD_ARGUMENT'], STATUS['TOO_LARGE']) and word in reply.text, reply


# ---- contractions -----------------------------------------------------------------------------------

@tap.test
def contractions_come_back_like_solutions(case):
    with case.daemon(dims='4x4x4x6') as d, Client(d) as c:
        a, b = c.keep(14), c.keep(12, dtype=qk.DTYPE_F32)
        channels = [qk.Channel(kind=k) for k in (qk.CHANNEL_MESON, qk.CHANNEL_NUCLEON, qk.CHANNEL_DELTA)]
        accepted = c.contract(a, first_a=2, request_b=b, channel=channels, momentum=[0, 0, 0, 1, -3, 2], origin=[1, 2, 3, 5],
                              sink=qk.Smearing(alpha=0.5, steps=3))
        assert accepted.field_bytes == (1 + 16 + 144) * 2 * 6 * 16 and accepted.upload_until == 0
        r = c.expect('result')
        assert (r.status, r.rhs, r.bytes, r.seconds) == (0, 0, accepted.field_bytes, 0.02), r
        sums = sum(range(3, 15)) + 100 * sum(range(1, 13))
        assert np.array_equal(c.fetch(r), np.arange(161 * 12) + 1000 * sums)
        c.ack(r.request)
        c.contract(a)
        assert np.array_equal(c.fetch(c.expect('result')), np.arange(6) + 1000 * 78)
        c.ack(c.request)
        c.contract(a, request_b=a, first_b=1)
        assert np.array_equal(c.fetch(c.expect('result')), np.arange(6) + 1000 * (78 + 100 * 90))
        c.ack(c.request)
        s = d.status_when(lambda s: s.counters.requests == 2)
        assert s.counters.contracted == 3 and s.counters.converged == 26 and s.counters.kept == 26


@tap.test
def the_same_contraction_again_is_executed_once(case):
    with case.daemon() as d, Client(d) as c:
        a = c.keep()
        number = c.contract(a).request
        c.expect('result')
        assert c.contract(a, request=number).repeated_submit
        assert c.expect('result').request == number
        rejected(c.contract(a, request=number, momentum=[0, 0, 1], expect='rejected'), 'BAD_ARGUMENT', 'other parameters')
        rejected(c.submit(1, request=number, expect='rejected'), 'BAD_ARGUMENT', 'other parameters')
        c.ack(number)
        rejected(c.contract(a, request=number, expect='rejected'), 'EXPIRED')
        assert d.status().counters.contracted == 1


@tap.test
def contractions_do_not_wait_for_slots(case):
    with case.daemon('--slots', '1') as d, Client(d) as c:
        a = c.keep()
        hold = c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD).request
        d.status_when(lambda s: s.counters.running == 1)
        waiting = c.submit(1, source=qk.SOURCE_POINT).request
        d.status_when(lambda s: s.counters.queued == 1)
        for _ in range(2):
            c.contract(a)
            r = c.expect('result')
            assert r.status == 0 and r.request not in (hold, waiting), r
        c.send(cancel=qk.Cancel(request=hold))
        assert [c.expect('result').request for _ in range(2)] == [hold, waiting]


@tap.test
def slots_do_not_wait_for_contractions_of_which_the_engine_has_one(case):
    with case.daemon('--slots', '2') as d, Client(d) as c:
        a = c.keep()
        hold = c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD).request
        d.status_when(lambda s: s.counters.running == 1)
        first, second = c.contract(a, source=fake.HOLD).request, c.contract(a).request
        d.status_when(lambda s: s.counters.running == 2)
        solve = c.submit(3, source=qk.SOURCE_POINT).request
        assert [c.expect('result').request for _ in range(3)] == [solve] * 3
        s = d.status()
        assert s.counters.queued == 1 and s.counters.running == 2 and s.engine.slots_busy == 1, s
        c.send(cancel=qk.Cancel(request=hold))  # lets the fake go on
        ended = [c.expect('result').request for _ in range(3)]
        assert set(ended) == {hold, first, second} and ended.index(first) < ended.index(second), ended


@tap.test
def contractions_take_turns_between_users(case):
    with case.daemon('--slots', '1') as d, Client(d, user='ada') as ada, Client(d, user='bob') as bob:
        a, b = ada.keep(), bob.keep()
        hold = ada.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD).request
        d.status_when(lambda s: s.counters.running == 1)
        ada.contract(a, source=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 2)
        first, *_, last = [ada.contract(a).request for _ in range(4)]
        other = bob.contract(b).request
        d.status_when(lambda s: s.counters.queued == 5)
        ada.send(cancel=qk.Cancel(request=hold))
        assert bob.results(1)[0].status == 0 and len(ada.results(6)) == 6
        ends = [d.log('job %s/%d: rhs 0: OK' % (c.client_id[:4].hex(), n)).string for c, n in ((ada, first), (bob, other), (ada, last))]
        assert d.lines.index(ends[1]) < d.lines.index(ends[2]), ends


@tap.test
def contractions_can_be_cancelled_and_have_deadlines(case):
    with case.daemon('--slots', '1') as d, Client(d) as c:
        a = c.keep()
        hold = c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD).request
        d.status_when(lambda s: s.counters.running == 1)
        running = c.contract(a, source=fake.HOLD).request
        d.status_when(lambda s: s.counters.running == 2)
        queued, late = c.contract(a).request, c.contract(a, deadline_ms=100).request
        c.send(cancel=qk.Cancel(request=queued))
        r = c.expect('result')
        assert (r.request, r.status, r.bytes) == (queued, STATUS['CANCELLED'], 0)
        r = c.expect('result')
        assert (r.request, r.status, r.bytes) == (late, STATUS['DEADLINE'], 0)
        c.send(cancel=qk.Cancel(request=running))
        c.send(release=qk.Release(request=a))
        c.ping()
        assert d.status().counters.kept == 12  # the engine may still read them
        c.send(cancel=qk.Cancel(request=hold))
        results = {r.request: r for r in (c.expect('result') for _ in range(2))}
        assert results[running].status == STATUS['CANCELLED'] and results[running].bytes == 0
        s = d.status_when(lambda s: s.counters.kept == 0)
        assert s.counters.contracted == 0 and s.counters.cancelled == 3


@tap.test
def a_client_may_go_while_its_contraction_runs(case):
    with case.daemon('--slots', '2') as d, Client(d) as watch:
        watch.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        with Client(d) as c:
            a = c.keep()
            c.contract(a, source=fake.HOLD)
            c.contract(a)
            d.status_when(lambda s: s.counters.running == 2 and s.counters.queued == 1)
            c.send(goodbye=qk.Goodbye())
            s = d.status_when(lambda s: s.counters.sessions == 1)
        assert s.counters.kept == 12 and s.counters.queued == 0
        watch.send(cancel=qk.Cancel(request=1))
        watch.expect('result')
        watch.ack(1)
        s = d.status_when(lambda s: s.counters.kept == 0)
        assert s.memory_used == 0 and s.counters.running == 0
        check_solves(watch)


@tap.test
def kept_solutions_survive_a_lost_engine(case):
    with case.daemon() as d, Client(d) as c:
        a = c.keep()
        c.contract(a, source=fake.DIE)
        r = c.expect('result')
        assert r.status == STATUS['ENGINE_LOST'] and r.bytes == 0 and 'signal 9' in r.text
        d.log('ready: ', 3)
        c.contract(a)
        assert np.array_equal(c.fetch(c.expect('result')), np.arange(4) + 1000 * 78)
        c.submit(1, **through(a, 11))
        assert c.fetch(c.expect('result'))[0] == 12
        assert d.status().counters.lost == 1


@tap.test
def kept_solutions_go_with_their_configuration(case):
    with case.daemon(env={'FAKE_LOAD': 'change'}) as d, Client(d) as c:
        a = c.keep()
        c.ack(a)
        os.kill(d.status().engine.pid, signal.SIGKILL)
        s = d.status_when(lambda s: s.engine.restarts == 1 and s.state == qk.STATE_READY)
        assert s.counters.kept == 0 and s.memory_used == 0
        rejected(c.contract(a, expect='rejected'), 'NOT_FOUND', 'request_a')


@tap.test
def contractions_that_fail_say_why(case):
    with case.daemon() as d, Client(d) as c:
        a = c.keep()
        c.contract(a, source=fake.FATAL)
        r = c.expect('result')
        assert r.status == STATUS['NO_DEVICE'] and r.bytes == 0 and r.text == 'as the test wants'
        c.contract(a, source=fake.ODD_STATUS)
        assert c.expect('result').status == STATUS['INTERNAL']
        c.contract(a, source=fake.STALE_SERIAL)
        assert c.expect('result').status == 0
        s = d.status()
        assert s.engine.restarts == 0 and s.counters.contracted == 1 and s.counters.failed == 2


@tap.test
def rejections_of_contractions_name_their_reason(case):
    with case.daemon('--max-memory', str(13 * FIELD)) as d, Client(d) as c:
        rejected(c.contract(1, expect='rejected', channel=[]), 'BAD_ARGUMENT', 'channel')
        rejected(c.contract(1, expect='rejected', momentum=[4, 0, 0]), 'BAD_ARGUMENT', 'momentum 0', 'px = 4')
        delta = [qk.Channel(kind=qk.CHANNEL_DELTA)] * 512
        rejected(c.contract(1, expect='rejected', channel=delta), 'TOO_LARGE', 'max-memory')
        rejected(c.contract(1, expect='rejected'), 'NOT_FOUND', 'request_a', 'request 1')
        rejected(c.contract(1, request=0, expect='rejected'), 'BAD_ARGUMENT', 'request = 0')
        assert d.status().counters.rejected == 5 and d.status().memory_used == 0


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
