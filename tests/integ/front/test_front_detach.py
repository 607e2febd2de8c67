#!/usr/bin/env python3
"""Requests that outlive their clients, and clients that come back to them: test_front_detach.py QUARKD"""
import shutil
import signal
import sys
import tempfile

import tap

try:
    import numpy as np
    from front_case import Case, fake, field
    from front_driver import STATUS, Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

HOUR = 3600 * 1000


def attached(client, request):
    client.send(attach=qk.Attach(request=request))
    return client.expect('attached', skip=('progress', 'credit', 'result'))


@tap.test
def a_detached_request_is_solved_and_waits_for_its_client(case):
    """By GOODBYE, and by silence; what was not detached goes."""
    with case.daemon('--lease', '0.3') as d:
        for silent in (False, True):
            c = Client(d)
            c.submit(2, source=qk.SOURCE_Z2, detach_ms=HOUR, tol=1e-3)
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, expect=None)
            c.expect('accepted', skip=('progress', 'credit', 'result'))
            before = d.status_when(lambda s: s.counters.running == 1 and s.counters.held == 2)
            if silent:
                c.error('EXPIRED')
            else:
                c.send(goodbye=qk.Goodbye())
            d.status_when(lambda s: s.counters.running == 0 and s.counters.requests == 1)
            c.close()
            with Client(d, c.client_id) as c2:
                assert c2.welcome.resumed
                a = attached(c2, 1)
                assert a.submit.nrhs == 2 and a.submit.tol == 1e-3 and a.submit.column[1].seed == 1 and not a.HasField('contract')
                assert a.accepted.request == 1 and a.accepted.field_bytes == 4**4 * 24 * 8
                for k, r in enumerate(c2.results(2)):
                    assert r.status == 0 and c2.fetch(r)[0] == k
                c2.send(attach=qk.Attach(request=2))
                assert c2.expect('error').status == STATUS['NOT_FOUND']
                c2.ack(1)
                s = d.status_when(lambda s: s.counters.requests == 0)
                assert s.memory_used == 0 and before.memory_used > 0
                c2.send(goodbye=qk.Goodbye())
                d.status_when(lambda s: s.counters.sessions == 0)


@tap.test
def contractions_can_be_detached(case):
    with case.daemon() as d:
        with Client(d) as c:
            kept = c.keep(detach_ms=HOUR)
            c.send(contract=qk.Contract(request=2, detach_ms=HOUR, contraction=qk.Contraction(
                request_a=kept, channel=[qk.Channel(kind=qk.CHANNEL_MESON)])))
            c.expect('accepted')
            c.send(goodbye=qk.Goodbye())
        with Client(d, c.client_id) as c2:
            a = attached(c2, 2)
            assert a.contract.contraction.request_a == kept and not a.HasField('submit')
            r = c2.expect('result')
            assert r.status == 0 and r.bytes == a.accepted.field_bytes and len(c2.fetch(r)) == 4


@tap.test
def nobody_waits_for_ever(case):
    """The time runs from the end of the last right-hand side; an upload that does not go on is no longer waited for, either."""
    with case.daemon() as d:
        with Client(d) as c:
            c.submit(1, detach_ms=1)
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, detach_ms=1)
            c.submit(1, source=qk.SOURCE_Z2, detach_ms=1)
            d.status_when(lambda s: s.counters.running == 1 and s.counters.held == 1)
            c.send(goodbye=qk.Goodbye())
        s = d.status_when(lambda s: s.counters.requests == 1)
        assert s.counters.running == 1 and d.log('nobody came for it')
        with Client(d, c.client_id) as c2:
            assert attached(c2, 2).submit.max_iter == fake.HOLD
            c2.send(cancel=qk.Cancel(request=2))
            assert c2.expect('result').status == STATUS['CANCELLED']
            c2.send(goodbye=qk.Goodbye())
        s = d.status_when(lambda s: s.counters.sessions == 0)
        assert s.memory_used == 0


@tap.test
def a_session_goes_with_what_was_kept(case):
    """All acknowledged, kept by handle, and nobody used it for the keep time: that was all its session was there for."""
    with case.daemon('--keep-time', '1') as d:
        with Client(d) as c:
            c.ack(c.keep(detach_ms=HOUR))
            d.status_when(lambda s: s.counters.held == 0)
            c.send(goodbye=qk.Goodbye())
        assert d.log('what it kept has expired')
        d.status_when(lambda s: s.counters.sessions == 0)


@tap.test
def the_time_has_a_limit(case):
    with case.daemon('--detach-time', '10') as d, Client(d) as c:
        refused = c.submit(1, source=qk.SOURCE_Z2, detach_ms=10001, expect='rejected')
        assert refused.status == STATUS['BAD_ARGUMENT'] and 'detach_ms = 10001 is over the limit of 10000' in refused.text, refused
        c.submit(1, source=qk.SOURCE_Z2, detach_ms=10000)


@tap.test
def what_is_detached_survives_the_front(case):
    """Killed, and stopped with nothing left to do but to wait for the client."""
    state = tempfile.mkdtemp(prefix='qk-state-')
    try:
        b = field()
        with case.daemon('--state', state) as d:
            with Client(d) as c:
                c.upload(c.submit(1, detach_ms=HOUR), [b])
                c.expect('result')
                c.send(goodbye=qk.Goodbye())
            d.status_when(lambda s: s.counters.held == 1)
            d.process.kill()
            d.process.wait()
        with case.daemon('--state', state) as d:
            d.status_when(lambda s: s.counters.held == 1)
            with Client(d, c.client_id) as c2:
                assert attached(c2, 1).submit.detach_ms == HOUR
                c2.expect('result')
                c2.send(goodbye=qk.Goodbye())
            d.status()
            d.process.send_signal(signal.SIGTERM)
            assert d.process.wait(20) == 0
        with case.daemon('--state', state) as d, Client(d, c.client_id) as c3:
            attached(c3, 1)
            assert np.array_equal(c3.fetch(c3.expect('result')), 2 * b)
            c3.ack(1)
            c3.send(goodbye=qk.Goodbye())
            d.status_when(lambda s: s.counters.sessions == 0)
            assert d.terminate() == 0
    finally:
        shutil.rmtree(state)


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
