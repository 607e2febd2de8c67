#!/usr/bin/env python3
"""quarkd among peers that break the protocol and with engines that fail: test_front_faults.py QUARKD"""
import os
import signal
import sys

import tap

try:
    import numpy as np
    import zmq
    from google.protobuf.message import DecodeError
    from front_case import Case, check_solves, fake, field, rng
    from front_driver import BIND, DOWNLOAD, MIB, STATUS, UPLOAD, Client, checksum, frame, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


# ---- peers that break the protocol ------------------------------------------------------------------

def hello(**more):
    body = dict(version=1, client_id=os.urandom(16))
    body.update(more)
    return qk.ClientMessage(hello=qk.Hello(**body)).SerializeToString()


@tap.test
def strangers_get_an_error_and_change_nothing(case):
    with case.daemon() as d, Client(d) as good, Client(d, hello=False) as bad:
        for parts in [[b''], [b'\xff' * 50], [b'\xfa\x01\x00'], [os.urandom(1000)], [hello(), b'more', b'parts']]:
            with Client(d, hello=False) as worse:  # whose connection ends with that
                worse.control.send_multipart(parts)
                worse.error('BAD_PROTOCOL')
        for message, status in [(hello(version=2), 'UNSUPPORTED'),
                                (hello(client_id=b'short'), 'BAD_PROTOCOL'), (hello(user='u' * 65), 'TOO_LARGE'),
                                (hello(program='p' * 129), 'TOO_LARGE')]:
            bad.control.send(message)
            bad.error(status)
        for body in [dict(ping=qk.Ping()), dict(cancel=qk.Cancel(request=1)), dict(ack=qk.Ack(request=1)),
                     dict(grant=qk.Grant(request=1, rhs=0, until=1)), dict(goodbye=qk.Goodbye()),
                     dict(release=qk.Release(request=1)), dict(contract=qk.Contract(request=1, contraction=qk.Contraction(request_a=1)))]:
            bad.send(**body)
            bad.error('NOT_FOUND')
        bad.submit(expect=None)
        bad.error('NOT_FOUND')
        for message in [b'', os.urandom(64), os.urandom(1000), frame(UPLOAD, 1, 0, b'abc', 3),
                        frame(BIND, payload=bytes(32), field_bytes=32)]:
            before = d.status().counters.dropped
            with Client(d, hello=False) as worse:
                worse.data.send(message)
                d.status_when(lambda s: s.counters.dropped > before)
        check_solves(good)
        s = d.status_when(lambda s: s.counters.dropped == 9 + 5)
        assert s.counters.sessions == 1 and s.memory_used == 0


@tap.test
def control_messages_over_the_limit_cut_the_connection(case):
    with case.daemon() as d, Client(d) as good, Client(d) as bad:
        monitor = bad.control.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        bad.control.send(bytes(64 * 1024 + 1))
        assert monitor.poll(60000), 'the connection is still there'
        bad.control.disable_monitor()
        monitor = bad.data.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        bad.data.send(bytes(64 + MIB + 1))
        assert monitor.poll(60000), 'the connection is still there'
        bad.data.disable_monitor()
        check_solves(good)


def breakers(accepted):
    """Data messages that break the protocol, with the status they get."""
    n, b = accepted.field_bytes, field().tobytes()
    good = dict(kind=UPLOAD, request=1, rhs=0, payload=b, field_bytes=n, field_checksum=checksum(b))
    yield 'BAD_PROTOCOL', frame(**dict(good, kind=DOWNLOAD))
    yield 'BAD_PROTOCOL', frame(**dict(good, kind=9))
    yield 'BAD_PROTOCOL', frame(**dict(good, request=0))
    yield 'BAD_PROTOCOL', frame(**dict(good, request=2))
    yield 'BAD_PROTOCOL', frame(**dict(good, rhs=1))
    yield 'BAD_PROTOCOL', frame(**dict(good, rhs=2))
    yield 'TOO_LARGE', frame(**dict(good, rhs=1024))
    yield 'BAD_PROTOCOL', frame(**dict(good, field_bytes=n + 8, field_checksum=0))
    yield 'BAD_PROTOCOL', frame(**dict(good, payload=b[:100], offset=100, field_checksum=0))
    yield 'BAD_CHECKSUM', frame(**dict(good, field_checksum=1))
    yield 'BAD_CHECKSUM', frame(**good, chunk_checksum=1)
    yield 'BAD_CHECKSUM', frame(**good, chunk_bytes=8, keep_header_checksum=True)
    yield 'TRUNCATED', frame(**good)[:-1]
    yield 'BAD_PROTOCOL', frame(**good) + b'x'
    yield 'UNSUPPORTED', frame(**good, version=3)
    yield 'BAD_CHECKSUM', frame(**good, version=2)  # which says that it is of blocks
    yield 'BAD_PROTOCOL', frame(**good, magic=b'FDKQ')
    yield 'TRUNCATED', b''
    yield 'BAD_PROTOCOL', os.urandom(500)


@tap.test
def bad_data_drop_their_peer_and_nobody_else(case):
    with case.daemon() as d, Client(d) as good:
        fields = [field(), field()]
        accepted = good.submit(2)
        good.upload(accepted, fields[:1])
        count = 0
        while True:
            with Client(d) as bad:
                cases = list(breakers(bad.submit(2)))
                if count == len(cases):
                    break
                status, message = cases[count]
                bad.data.send(message)
                bad.error(status)
                count += 1
        s = d.status_when(lambda s: s.counters.sessions == 1 + 1)  # the good one and the one that did nothing
        assert s.counters.dropped == count
        good.upload(accepted, fields, begin=accepted.field_bytes)
        for r in good.results(2):
            assert r.status == 0 and np.array_equal(good.fetch(r), 2 * fields[r.rhs])


@tap.test
def data_over_the_credit_drop_the_peer(case):
    with case.daemon(dims='16x16x8x16') as d, Client(d) as bad, Client(d) as good:
        accepted = bad.submit(4)
        b = field(32768).tobytes()
        for offset in range(0, 16 * MIB, MIB):  # credit is never waited for
            rhs, at = divmod(offset, len(b))
            last = at + MIB == len(b)
            piece = frame(UPLOAD, 1, rhs, b[at:at + MIB], len(b), at, checksum(b) if last else 0)
            bad.data.send(piece)
        del accepted
        # either the server kept up and its credit with it, or the peer is gone: memory is bounded either way
        s = d.status()
        assert s.memory_used <= s.memory_limit
        b = field(32768)
        (r, x), = good.solve([b])
        assert r.status == 0 and np.array_equal(x, 2 * b)


@tap.test
def a_wrong_token_binds_nothing(case):
    with case.daemon() as d, Client(d, bind=False) as victim, Client(d, hello=False) as thief:
        thief.client_id = victim.client_id
        thief.bind(token=os.urandom(16))
        d.status_when(lambda s: s.counters.dropped == 1)
        victim.bind()
        check_solves(victim)


@tap.test
def requests_about_nothing_get_an_error_that_is_not_fatal(case):
    with case.daemon() as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        for status, body in [('NOT_FOUND', dict(ack=qk.Ack(request=7))),
                             ('NOT_FOUND', dict(release=qk.Release(request=7))),
                             ('NOT_FOUND', dict(cancel=qk.Cancel(request=7))),
                             ('NOT_FOUND', dict(grant=qk.Grant(request=7, rhs=0, until=1))),
                             ('BAD_ARGUMENT', dict(ack=qk.Ack(request=1, rhs=[1]))),
                             ('BAD_ARGUMENT', dict(ack=qk.Ack(request=1, rhs=[0]))),
                             ('BAD_ARGUMENT', dict(cancel=qk.Cancel(request=1, rhs=[5]))),
                             ('BAD_ARGUMENT', dict(cancel=qk.Cancel(request=1, rhs=[0, 1]))),  # and 0 goes on
                             ('BAD_ARGUMENT', dict(grant=qk.Grant(request=1, rhs=1, until=1))),
                             ('BAD_ARGUMENT', dict(grant=qk.Grant(request=1, rhs=0, until=1 << 60))),
                             ('BAD_ARGUMENT', dict(grant=qk.Grant(request=1, rhs=0, until=1, **{'from': 2})))]:
            c.send(**body)
            assert c.error(status, fatal=False).request in (1, 7)
        c.send(cancel=qk.Cancel(request=1))
        assert c.expect('result').status == STATUS['CANCELLED']
        check_solves(c)


def may_shut_down(message):
    try:
        return qk.ClientMessage.FromString(message).HasField('shutdown')
    except DecodeError:
        return False


def wait_for(*sockets):
    """Those that can be read, once one can."""
    poller = zmq.Poller()
    for s in sockets:
        poller.register(s, zmq.POLLIN)
    ready = dict(poller.poll(60000))
    assert ready, 'nothing comes'
    return ready


@tap.test
def random_messages_do_no_harm(case):
    with case.daemon() as d, Client(d) as good:
        valid = [hello(), qk.ClientMessage(submit=qk.Submit(request=1, nrhs=1, dtype=2, tol=1e-8, source=1, sink=1,
                                                            column=[qk.Column()])).SerializeToString(),
                 qk.ClientMessage(ack=qk.Ack(request=1, rhs=[0, 1, 2])).SerializeToString(),
                 qk.ClientMessage(submit=qk.Submit(request=1, nrhs=1, dtype=2, tol=1e-8, source=5, sink=3, keep_ms=10,
                                                   column=[qk.Column(request=1, rhs=1, gamma=15, px=1)],
                                                   smear=qk.Smearing(alpha=1, steps=2, links=3, link_param=[1, 1, 1],
                                                                     link_steps=3))).SerializeToString(),
                 qk.ClientMessage(contract=qk.Contract(request=1, contraction=qk.Contraction(
                     request_a=1, channel=[qk.Channel(kind=1)], momentum=[1, 2, 3], origin=[0, 1, 2, 3],
                     sink=qk.Smearing(alpha=1, steps=2)))).SerializeToString(),
                 qk.ClientMessage(release=qk.Release(request=1)).SerializeToString()]
        for i in range(600):
            m = bytearray(valid[i % 6])
            for _ in range(1 + i % 4):
                m[rng.integers(len(m))] = rng.integers(256)
            if may_shut_down(bytes(m)):
                continue
            stranger = i // 6 % 2 == 1
            with Client(d, hello=not stranger, bind=False) as bad:
                ended = bad.control.get_monitor_socket(zmq.EVENT_DISCONNECTED, 'inproc://' + os.urandom(8).hex()) if stranger else None
                bad.control.send(bytes(m))
                bad.send(status=qk.StatusRequest())
                name = None
                while name != 'status':
                    if stranger and not bad.later and bad.control not in wait_for(bad.control, ended):
                        break  # where very many come at once not every one is told
                    name, body = bad.receive()
                    assert name in ('welcome', 'error', 'rejected', 'accepted', 'result', 'pong', 'status'), name
                    if stranger and name == 'error' and body.text == 'control message that cannot be read':
                        break  # its connection ends
                if stranger:
                    bad.control.disable_monitor()
        check_solves(good)
        assert d.process.poll() is None


# ---- the engine -------------------------------------------------------------------------------------

@tap.test
def what_kills_two_engines_is_not_tried_again(case):
    for action, reason in [(fake.DIE, 'signal 9 (Killed): assert: x.c:7: assertion failed'), (fake.GARBAGE, 'no message'), (fake.NO_SUCH_SLOT, 'does not exist'),
                           (fake.FATAL, 'fallen off'), (fake.STALL, 'silent')]:
        # Only who is to be silent is given little time, and enough of it to start in.
        patience = ['--engine-timeout', '4'] if action == fake.STALL else []
        with case.daemon('--slots', '1', *patience) as d, Client(d) as c:
            for max_iter in (fake.HOLD, action, fake.SOLVE):
                c.submit(1, source=qk.SOURCE_POINT, max_iter=max_iter)
            d.status_when(lambda s: s.counters.running == 1 and s.counters.queued == 2)
            c.send(cancel=qk.Cancel(request=1))  # the slot is free for the second
            results = {r.request: r for r in (c.expect('result') for _ in range(3))}
            assert results[1].status == STATUS['CANCELLED']
            assert results[2].status == STATUS['ENGINE_LOST'], results[2]
            assert reason in results[2].text and '2 engines' in results[2].text, results[2]
            assert results[3].status == 0  # it was in the queue: the third engine solved it
            d.log('ready: ', 3)
            for k in (1, 2, 3):
                c.ack(k)
            check_solves(c)
            s = d.status_when(lambda s: s.counters.requests == 0 and s.memory_used == 0)
            assert s.engine.restarts == 2 and reason in s.engine.last_error, (reason, s.engine)
            assert s.counters.lost == 1
            assert d.terminate() == 0


@tap.test
def what_a_killed_engine_held_is_done_by_the_next_one(case):
    with case.daemon() as d, Client(d) as c:
        fields = [field() for _ in range(5)]
        accepted = c.submit(5, max_iter=fake.HOLD_ONCE)
        c.upload(accepted, fields)
        s = d.status_when(lambda s: s.counters.running == 5)
        os.kill(s.engine.pid, signal.SIGKILL)
        for r in c.results(5):
            assert r.status == 0 and np.array_equal(c.fetch(r), 2 * fields[r.rhs])
        c.ack(1)
        s = d.status_when(lambda s: s.counters.requests == 0)
        assert s.engine.restarts == 1 and s.counters.lost == 0 and s.counters.converged == 5 and s.memory_used == 0
        check_solves(c)


@tap.test
def who_killed_an_engine_is_found_among_many(case):
    with case.daemon('--slots', '8') as d, Client(d) as c, Client(d, user='bob') as other:
        c.submit(6, source=qk.SOURCE_POINT, max_iter=fake.HOLD_ONCE)
        d.status_when(lambda s: s.counters.running == 6)
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.DIE)
        results = [c.expect('result') for _ in range(7)]
        assert all(r.status == (0 if r.request == 1 else STATUS['ENGINE_LOST']) for r in results), results
        d.log('ready: ', 3)
        check_solves(other)
        s = d.status()
        assert s.engine.restarts == 2 and s.counters.lost == 1


@tap.test
def suspects_go_one_by_one_and_in_nobodys_way(case):
    with case.daemon('--slots', '4') as d, Client(d) as c, Client(d, user='bob') as other:
        c.submit(3, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        s = d.status_when(lambda s: s.counters.running == 3)
        os.kill(s.engine.pid, signal.SIGKILL)
        d.log('ready: ', 2)
        d.status_when(lambda s: s.counters.running == 1 and s.counters.queued == 2)
        check_solves(other, 5)
        c.send(cancel=qk.Cancel(request=1))
        assert [r.status for r in c.results(3)] == [STATUS['CANCELLED']] * 3
        c.ack(1)
        assert d.status_when(lambda s: s.counters.requests == 0).memory_used == 0


@tap.test
def what_an_engine_overstates_is_not_believed(case):
    with case.daemon() as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.OVERSTATE)
        r = c.expect('result')
        assert r.status == STATUS['NOT_CONVERGED'] and r.true_residual == 0.5 and r.bytes > 0
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.STALE_SERIAL)
        assert c.expect('result').status == 0
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.ODD_STATUS)
        assert c.expect('result').status == STATUS['INTERNAL']
        assert d.status().engine.restarts == 0


@tap.test
def a_slot_that_ignores_its_cancel_does_not_hold_the_client(case):
    with case.daemon('--slots', '2') as d:
        with Client(d) as c:
            c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.DEAF)
            d.status_when(lambda s: s.counters.running == 1)
            c.send(goodbye=qk.Goodbye())
            d.status_when(lambda s: s.counters.sessions == 0)
        with Client(d) as c:
            check_solves(c)
        assert d.status().counters.running == 1


@tap.test
def another_configuration_after_a_restart_ends_waiting_requests(case):
    with case.daemon('--slots', '1', env={'FAKE_LOAD': 'change'}) as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        pid = d.status_when(lambda s: s.counters.running == 1).engine.pid
        c.submit(1, source=qk.SOURCE_POINT)
        c.submit(1)
        d.status_when(lambda s: s.counters.queued == 1)
        os.kill(pid, signal.SIGKILL)
        results = {r.request: r for r in (c.expect('result') for _ in range(3))}
        assert all(r.status == STATUS['ENGINE_LOST'] and 'changed' in r.text for r in results.values()), results


@tap.test
def any_allocation_can_fail(case):
    left = served = 0
    for n in range(1, 60):
        with case.daemon(env={'QK_FAULTS': 'alloc:%d' % n}, wait=None) as d:
            if not (d.endpoint and d.log('ready: ')):
                assert d.process.wait(60) in (64, 69, 75, 78), (n, d.lines)
                left += 1
                continue
            good = 0
            for _ in range(2):  # it fails once, so one of them meets it at most; an answer comes in any case
                with Client(d, hello=False) as c:
                    c.send(hello=qk.Hello(version=1, client_id=c.client_id))
                    if c.receive()[0] == 'welcome':
                        c.submit(1, source=qk.SOURCE_POINT, expect=None)
                        good += c.receive()[0] == 'accepted' and c.expect('result').status == 0
            assert good >= 1, n
            served += good
    assert left > 3 and served > 3, (left, served)


@tap.test
def any_allocation_can_fail_where_solutions_are_kept(case):
    """From before SUBMIT to after the last RELEASE: each request ends in some way, and no memory is left."""
    refused = failed = 0
    for n in range(20, 60, 2):
        with case.daemon(env={'QK_FAULTS': 'alloc:%d' % n}, wait=None) as d:
            if not (d.endpoint and d.log('ready: ')):
                continue
            with Client(d, hello=False) as c:
                c.send(hello=qk.Hello(version=1, client_id=c.client_id))
                if c.receive()[0] != 'welcome':
                    continue
                columns = [qk.Column(seed=i + 1) for i in range(12)]
                c.submit(12, source=qk.SOURCE_Z2, sink=qk.SINK_KEEP, column=columns, expect=None)
                name, _ = c.receive()
                good = name == 'accepted' and all(r.status == 0 for r in c.results(12))
                refused += name == 'rejected'
                c.contract(1, expect=None)
                name, _ = c.receive()
                if name == 'accepted':
                    good &= c.expect('result').status == 0
                refused += name == 'rejected'
                failed += not good
                for k in (1, 2):
                    c.send(release=qk.Release(request=k))
                s = d.status_when(lambda s: s.counters.requests == 0)
                assert s.memory_used == 0 and s.counters.kept == 0, (n, s)
    assert failed > 0, (refused, failed)


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
