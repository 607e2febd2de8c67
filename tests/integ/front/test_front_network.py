#!/usr/bin/env python3
"""Fields by several data endpoints, each with a thread of its own: test_front_network.py QUARKD [SEED [MESSAGES]]"""
import functools
import os
import random
import re
import socket
import sys
import tempfile
import threading
import time

import tap

try:
    import numpy as np
    import zmq
    from front_case import LATER, Case, State, check_solves, fake, field
    from front_driver import BIND, BOUND, MIB, STATUS, UPLOAD, Client, block_checksum, checksum, frame, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

THREADS, BIG = 4, '8x8x16x16'  # a field of BIG has three chunks
SITES = 8 * 8 * 16 * 16


def daemon_of(case, *options, **more):
    return case.daemon('--data-threads', str(THREADS), *options, **more)


@tap.test
def each_endpoint_carries_fields_both_ways(case):
    with daemon_of(case, dims=BIG) as d:
        clients = [Client(d, endpoint=i) for i in range(THREADS)]
        assert all(len(c.welcome.extra_data_endpoint) == THREADS and 7 in c.welcome.feature for c in clients)
        assert len({c.data_endpoint(i) for i, c in enumerate(clients)}) == THREADS
        assert len({c.welcome.extra_data_endpoint[0] for c in clients}) == THREADS  # they are to spread over them
        fields = [[field(SITES) for _ in range(3)] for _ in clients]
        errors = []

        def work(c, mine):
            try:
                for (result, x), b in zip(c.solve(mine), mine):
                    assert result.status == 0 and np.array_equal(x, 2 * b), result
            except Exception as e:  # pylint: disable=broad-except
                errors.append(e)
        threads = [threading.Thread(target=work, args=pair) for pair in zip(clients, fields)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not errors, errors
        for c in clients:
            c.close()
        assert d.terminate() == 0


@tap.test
def ports_follow_the_first_one_and_may_be_taken(case):
    with socket.socket() as first:
        first.bind(('127.0.0.1', 0))
        port = first.getsockname()[1]
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', port + 2))
        with daemon_of(case, '--listen-data', 'tcp://127.0.0.1:%d' % port) as d, Client(d) as c:
            ports = [int(c.data_endpoint(i).rsplit(':', 1)[1]) for i in range(1, THREADS)]
            assert d.log('data thread 2 takes any port') and len({port, port + 2, *ports}) == THREADS + 1, (port, ports)
            for i, got in zip((1, 2, 3), ports):  # another program may have one of them
                assert got == port + i or any('data thread %d takes any port' % i in line for line in d.lines), (port, ports)
            for endpoint in range(THREADS):
                with Client(d, endpoint=endpoint) as other:
                    check_solves(other)


@tap.test
def ipc_endpoints_are_paths_beside_each_other(case):
    with tempfile.TemporaryDirectory() as folder, daemon_of(case, '--listen', 'ipc://%s/q' % folder) as d:
        with Client(d) as c:
            assert [c.data_endpoint(i) for i in range(1, THREADS)] == ['ipc://%s/q-data-%d' % (folder, i) for i in range(1, THREADS)]
        for endpoint in range(THREADS):
            assert os.stat('%s/q-data%s' % (folder, '-%d' % endpoint if endpoint else '')).st_mode & 0o077 == 0
            with Client(d, endpoint=endpoint) as c:
                check_solves(c)


@tap.test
def an_upload_goes_on_by_another_endpoint(case):
    """The client has lost its data connection in the middle of a field, and binds by another one."""
    with daemon_of(case, dims=BIG) as d, Client(d, endpoint=1) as c:
        fields = [field(SITES) for _ in range(2)]
        accepted = c.submit(2)
        data = fields[0].tobytes()
        for offset in (0, MIB):
            c.data.send(frame(UPLOAD, accepted.request, 0, data[offset:offset + MIB], len(data), offset))
        for endpoint in (2, 3, 0):
            c.data.close()
            c.data = c._socket()
            c.data.connect(c.data_endpoint(endpoint))
            c.bind()
            again = c.submit(2, request=accepted.request)
            assert again.repeated_submit and again.upload_next <= len(data)
            # whatever of it is here, also a part of a chunk, is sent twice
            begin = max(0, again.upload_next - 1000)
            c.data.send(frame(UPLOAD, accepted.request, 0, data[begin:begin + MIB], len(data), begin,
                              checksum(data) if begin + MIB >= len(data) else 0))
            c.ping()
        c.upload(accepted, fields, begin=MIB)
        for r in c.results(2):
            assert r.status == 0 and np.array_equal(c.fetch(r), 2 * fields[r.rhs])


@tap.test
def what_a_client_sent_before_it_left_is_taken(case):
    """Its last chunks go into memory when it has said GOODBYE: the detached request is solved without it."""
    with daemon_of(case, dims=BIG) as d:
        for _ in range(20):
            b = field(SITES)
            with Client(d, endpoint=1) as c:
                accepted = c.submit(1, detach_ms=60000)
                c.upload(accepted, [b])
                c.data.setsockopt(zmq.LINGER, 5000)
                c.send(goodbye=qk.Goodbye())
        d.status_when(lambda s: s.counters.running == 0 and s.counters.queued == 0)
        with Client(d, endpoint=2) as c:
            check_solves_of(c)


@tap.test
def checksums_of_blocks_go_both_ways(case):
    """A client that says so has each byte hashed once; its chunks may all the same begin and end anywhere."""
    with daemon_of(case, dims=BIG) as d, Client(d, endpoint=1, blocks=True) as c, Client(d, endpoint=1) as old:
        assert 8 in c.welcome.feature
        fields = [field(SITES) for _ in range(3)]
        for chunk in (MIB, MIB - 1, 700000, 65537):
            accepted = c.submit(3)
            c.upload(accepted, fields, chunk=chunk)
            for r in c.results(3):
                assert r.status == 0 and np.array_equal(c.fetch(r), 2 * fields[r.rhs])
                for begin in (MIB, MIB + 5, r.bytes - 1):  # and again from anywhere
                    c.send(grant=qk.Grant(request=r.request, rhs=r.rhs, until=r.bytes, **{'from': begin}))
                    got = b''
                    while begin + len(got) < r.bytes:
                        piece = c.chunk()
                        assert piece['offset'] == begin + len(got) and piece['version'] == 2
                        got += piece['payload']
                    x = (2 * fields[r.rhs]).tobytes()
                    assert got == x[begin:] and piece['field_checksum'] == block_checksum(x)
        check_solves_of(old)


@tap.test
def a_solution_goes_on_to_a_client_of_another_version(case):
    """Which asks for the rest of what the first one has begun to fetch, with the other kind of checksum."""
    with daemon_of(case, dims=BIG) as d:
        for blocks in (False, True):
            with Client(d, blocks=blocks, endpoint=1) as c:
                accepted = c.submit(1, source=qk.SOURCE_Z2, detach_ms=60000)
                r, = c.results(1)
                c.send(grant=qk.Grant(request=r.request, rhs=0, until=MIB))
                x = c.chunk()['payload']
            with Client(d, client_id=c.client_id, blocks=not blocks, endpoint=2) as c:
                c.submit(1, request=accepted.request, source=qk.SOURCE_Z2, detach_ms=60000)
                r, = c.results(1)
                c.send(grant=qk.Grant(request=r.request, rhs=0, until=r.bytes, **{'from': MIB}))
                while len(x) < r.bytes:
                    piece = c.chunk()
                    x += piece['payload']
                assert piece['field_checksum'] == (checksum if blocks else block_checksum)(x)
                c.ack(r.request)


@tap.test
def a_wrong_checksum_of_blocks_ends_the_session(case):
    with daemon_of(case, dims=BIG) as d:
        data = field(SITES).tobytes()
        for wrong, status in ((checksum(data), 'BAD_CHECKSUM'), (block_checksum(data) ^ 1, 'BAD_CHECKSUM'), (None, 'BAD_PROTOCOL')):
            with Client(d, endpoint=1, blocks=True) as c:
                accepted = c.submit(1)
                for offset in range(0, len(data), MIB):
                    c.blocks = wrong is not None or offset == 0  # None: a field that goes on with version 1
                    last = offset + MIB >= len(data)
                    c.data.send(frame(UPLOAD, accepted.request, 0, data[offset:offset + MIB], len(data), offset, wrong if last else 0, version=2)
                                if wrong else c.piece(accepted.request, 0, data, offset, MIB))
                c.error(status)
        with Client(d, endpoint=1) as c:
            check_solves_of(c)


@tap.test
def a_late_bind_does_not_take_the_session_back(case):
    """The client has given up a data connection whose BIND is still under way, said HELLO again, and bound another one."""
    with daemon_of(case, dims=BIG) as d, Client(d, bind=False, endpoint=1) as c:
        late, first = c.data, c.welcome.token
        c.data = c._socket()
        c.data.connect(c.data_endpoint(2))
        assert c.hello().token != first
        c.bind()
        dropped = d.status().counters.dropped
        late.send(frame(BIND, payload=c.client_id + first, field_bytes=32))
        d.status_when(lambda s: s.counters.dropped > dropped)
        check_solves_of(c)
        assert not late.poll(0) and d.log('a late BIND is ignored')
        c.hello()  # and with a token of its own it is a connection as any other
        c.data, late = late, c.data
        c.bind()
        check_solves_of(c)
        late.close()


@tap.test
def a_solution_that_cannot_be_read_ends_its_download(case):
    """Its object has been removed, which is told once in the log and each time to the client; all others are served."""
    with daemon_of(case, dims=BIG) as d, Client(d, endpoint=1) as c, Client(d, endpoint=1) as other:
        c.submit(1, source=qk.SOURCE_Z2, sink=qk.SINK_KEEP)
        lost, = c.results(1)
        prefix = 'quarkd-%d-' % d.process.pid
        names = [n for n in os.listdir('/dev/shm') if n.startswith(prefix) and os.stat('/dev/shm/' + n).st_size == lost.bytes]
        c.submit(1, source=qk.SOURCE_Z2, sink=qk.SINK_KEEP)
        good, = c.results(1)
        for name in names:
            os.unlink('/dev/shm/' + name)
        for begin in (0, 0, MIB):
            c.send(grant=qk.Grant(request=lost.request, rhs=0, until=lost.bytes, **{'from': begin}))
            e = c.error('IO_ERROR', fatal=False)
            assert e.request == lost.request and 'cannot read its solution' in e.text, e
            check_solves_of(other)
        c.send(grant=qk.Grant(request=good.request, rhs=0, until=good.bytes))
        while (chunk := c.chunk())['kind'] == BOUND:  # the end of a message that was begun
            pass
        assert (chunk['request'], chunk['offset']) == (good.request, 0)
        assert len([line for line in d.lines if 'its solution is not sent' in line and 'warn' in line.lower()]) == 1, d.said()


@tap.test
def a_connection_of_another_endpoint_is_a_stranger(case):
    """Routing ids are those of a socket: the same one at another endpoint is somebody else's."""
    with daemon_of(case) as d, Client(d, bind=False) as c, Client(d, bind=False) as other, Client(d, bind=False) as stranger:
        for i, client in enumerate((stranger, c, other)):
            client.data.close()
            client.routing_id = b'me'
            client.data = client._socket()
            client.data.connect(client.data_endpoint(i))
        for client in (c, other):
            client.bind()
            check_solves(client)
        accepted = c.submit(1)
        b = field()
        dropped = d.status().counters.dropped
        stranger.data.send(frame(UPLOAD, accepted.request, 0, b.tobytes(), b.nbytes, 0, checksum(b.tobytes())))
        d.status_when(lambda s: s.counters.dropped > dropped)
        c.upload(accepted, [b])
        assert np.array_equal(c.fetch(c.results(1)[0]), 2 * b)


@tap.test
def who_does_not_read_costs_nobody_else(case):
    """Its downloads fill its queue and stop there; a client of the same thread is served meanwhile, then the rest comes."""
    n = 24
    with daemon_of(case, dims=BIG) as d, Client(d, endpoint=1) as deaf, Client(d, endpoint=1) as c:
        deaf.data.close()
        deaf.data = deaf._socket()
        deaf.data.rcvhwm = 1
        deaf.data.setsockopt(zmq.RCVBUF, 65536)
        deaf.data.connect(deaf.data_endpoint(1))
        deaf.bind()
        accepted = deaf.submit(n, source=qk.SOURCE_Z2)
        results = deaf.results(n)
        for r in results:
            deaf.send(grant=qk.Grant(request=r.request, rhs=r.rhs, until=r.bytes))
        deaf.ping()
        for _ in range(5):
            check_solves_of(c)
        got = {}
        while sum(len(v) for v in got.values()) < n * accepted.field_bytes:
            chunk = deaf.chunk()
            so_far = got.setdefault(chunk['rhs'], bytearray())
            assert chunk['offset'] == len(so_far), chunk['offset']
            so_far += chunk['payload']
            if len(so_far) == accepted.field_bytes:
                assert chunk['field_checksum'] == checksum(bytes(so_far))


def check_solves_of(client):
    b = field(SITES)
    (result, x), = client.solve([b])
    assert result.status == 0 and np.array_equal(x, 2 * b), result


def wait_while_it_lives(d, sock):
    while not sock.poll(50):
        assert d.process.poll() is None, 'it was killed'


@tap.test
def fields_outlive_the_front_wherever_it_is_killed(case):
    """kill -9 at any moment of an upload by one of the threads: the next front has what it told of, and the rest is sent again,
    also by clients of another version."""
    with State(case) as state, state.fronts() as front:
        client_id, fields = os.urandom(16), [field(SITES) for _ in range(3)]
        rng, done, env = random.Random(5), False, {}
        for life in range(8):
            with front('--data-threads', str(THREADS), dims=BIG, env=env) as d, \
                    Client(d, client_id=client_id, endpoint=life % THREADS, blocks=life % 2 == 1) as c:
                c.wait = functools.partial(wait_while_it_lives, d)
                c.submit(3, request=1, detach_ms=3600000, expect=None)
                accepted = c.expect('accepted', skip=('progress', 'credit', 'result'))
                stop = threading.Timer(rng.uniform(0, 0.03) if life < 7 else 1000, d.process.kill)
                stop.start()
                try:
                    c.upload(accepted, fields, chunk=rng.choice([100000, MIB]), begin=accepted.upload_next)
                    if life == 7:
                        results = {}
                        while len(results) < 3:
                            r = c.expect('result')
                            results[r.rhs] = r
                        for rhs, r in results.items():
                            assert r.status == 0 and np.array_equal(c.fetch(r), 2 * fields[rhs]), r
                        c.ack(1)
                        done = True
                except AssertionError:
                    if life == 7:
                        raise
                finally:
                    stop.cancel()
                    if life < 7:
                        d.process.kill()
                env = LATER
        assert done


@tap.test
def damaged_frames_on_all_endpoints_at_once(case):
    """Headers and payloads with a wrong bit, from clients and strangers, while others work: each ends its own session at most."""
    print('# seed %d, %d messages' % (case.seed, case.messages), flush=True)
    with daemon_of(case, '--lease', '2') as d:
        def spoil(endpoint):
            rng, left = random.Random(case.seed * 10 + endpoint), case.messages // THREADS
            data = field().tobytes()
            while left > 0:
                with Client(d, endpoint=endpoint) as c:
                    accepted = c.submit(1)
                    for _ in range(50):
                        good = frame(rng.choice([UPLOAD, UPLOAD, BIND, 9]), accepted.request, 0, data, len(data), 0, checksum(data))
                        message = bytearray(good)
                        message[rng.randrange(64 if rng.random() < 0.9 else len(message))] ^= 1 << rng.randrange(8)
                        if rng.random() < 0.3:
                            message[56:64] = checksum(bytes(message[:56])).to_bytes(8, 'little')
                        c.data.send(message)
                        left -= 1
                    c.data.setsockopt(zmq.LINGER, 2000)
        threads = [threading.Thread(target=spoil, args=(i,)) for i in range(THREADS)]
        for t in threads:
            t.start()
        solved = 0
        while any(t.is_alive() for t in threads):
            with Client(d, endpoint=solved % THREADS) as c:
                check_solves(c)
            solved += 1
        for t in threads:
            t.join()
        print('# %d solved beside them' % solved)
        assert d.status_when(lambda s: s.counters.sessions == 0).memory_used == 0
        assert d.terminate() == 0
        assert not [line for line in d.lines if re.search('Sanitizer|runtime error', line)]


if __name__ == '__main__':
    the_case = Case(sys.argv[1])
    the_case.seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    the_case.messages = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
    tap.run(the_case)
