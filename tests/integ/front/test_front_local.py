"""Fields by descriptor over quarkd's local socket, with an engine that only pretends.

Usage: test_front_local.py QUARKD
"""
import fcntl
import os
import resource
import signal
import socket
import stat
import sys
import tempfile

import tap

try:
    from front_case import Case, check_solves, descriptors, fake, field
    import numpy as np
    from front_driver import STATUS, UPLOAD, Client, frame
    from front_local import Local, memfd
    from engine_driver import qk
except (ImportError, OSError, FileNotFoundError) as e:
    tap.skip_all(str(e))

FIELD = 256 * 24 * 8


def check_alive(d, n=1):
    """Others are served as if nothing had been."""
    with Client(d) as c:
        check_solves(c, n)
        c.send(goodbye=qk.Goodbye())


def settled(d, client, before):
    """Waits until the daemon has no more descriptors than before."""
    for _ in range(5000):
        client.ping()
        if descriptors(d) <= before:
            return
    raise AssertionError('%d descriptors, there were %d' % (descriptors(d), before))


def credit_for(client, position):
    """Waits until the daemon says that the upload is here up to there."""
    while True:
        name, body = client.receive_new()
        if name == 'credit':
            if body.next >= position:
                return
        else:
            client.later.append((name, body))


@tap.test
def fields_go_by_descriptor_both_ways(case):
    with case.daemon() as d, Client(d) as c, Local(c) as local:
        assert stat.S_IMODE(os.stat(c.welcome.local_path).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(os.path.dirname(c.welcome.local_path)).st_mode) == 0o700
        fields = [field() for _ in range(20)]
        a = c.submit(20)
        for i, b in enumerate(fields):
            local.put(a.request, i, b.tobytes())
        for r, b in zip(c.results(20), fields):
            assert r.status == 0 and np.array_equal(local.fetch(r), 2 * b), r
        s = c.status()
        assert s.counters.bytes_local == 2 * 20 * FIELD == s.counters.bytes_in + s.counters.bytes_out
        c.ack(a.request)
        c.ping()
        s = c.status()
        assert (s.counters.requests, s.memory_used) == (0, 0), s
        local.send(fetch=qk.LocalFetch(request=a.request, rhs=0))  # of a request that is over
        assert qk.LocalSolution.FromString(local.socket.recv(256)).bytes == 0
        d.terminate()


@tap.test
def memory_of_large_fields_is_used_again_but_not_under_a_client(case):
    sites = 16 * 16 * 16 * 8
    with case.daemon(dims='16x16x16x8') as d, Client(d) as c, Local(c) as local:
        held, inodes = [], []
        for turn in range(6):
            b = field(sites)
            a = c.submit(1)
            local.put(a.request, 0, b.tobytes())
            r, = c.results(1)
            local.send(fetch=qk.LocalFetch(request=r.request, rhs=0))
            _, (fd,), _, _ = socket.recv_fds(local.socket, 256, 4)
            inodes.append(os.fstat(fd).st_ino)
            assert os.pread(fd, 16 * 12 * sites, 0) == (2 * b).tobytes(), turn
            if turn < 2:
                held.append((fd, 2 * b))
            else:
                os.close(fd)
            c.ack(a.request)
            c.ping()
        for fd, x in held:
            assert os.pread(fd, 16 * 12 * sites, 0) == x.tobytes()
            os.close(fd)
        assert not set(inodes[:2]) & set(inodes[2:]), inodes
        d.terminate()
        assert not [name for name in os.listdir('/dev/shm') if name.startswith('quarkd-%d-' % d.process.pid)]
    if len(set(inodes)) == len(inodes):
        raise tap.Skip('no leases on /dev/shm: nothing is used again')


@tap.test
def solutions_are_handed_out_while_fields_are_copied(case):
    sites, puts = 16 * 16 * 16 * 8, 7
    with case.daemon(dims='16x16x16x8') as d, Client(d) as c, Local(c) as local:
        b = field(sites)
        data = b.tobytes()
        fd = memfd(data)
        for _ in range(5):  # who is slow to ask may find everything done
            one = c.submit(1)
            local.put(one.request, 0, data, fd)
            r, = c.results(1)
            many = c.submit(puts)
            d.process.send_signal(signal.SIGSTOP)  # all that follows is there at once
            for i in range(puts):
                local.put(many.request, i, data, fd)
            local.send(fetch=qk.LocalFetch(request=r.request, rhs=0))
            d.process.send_signal(signal.SIGCONT)
            _, (solution,), _, _ = socket.recv_fds(local.socket, 256, 4)
            c.ping()
            arrived = max([0] + [e.next for name, e in c.later if name == 'credit' and e.request == many.request])
            assert os.pread(solution, len(data), 0) == (2 * b).tobytes()
            os.close(solution)
            results = c.results(puts)
            assert [x.status for x in results] == [0] * puts
            assert np.array_equal(local.fetch(results[-1]), 2 * b)
            c.ack(one.request)
            c.ack(many.request)
            if arrived < puts * len(data):
                return
        raise AssertionError('the solution came when all fields had been copied')


@tap.test
def fields_are_taken_in_the_order_in_which_they_were_handed_over(case):
    """Small ones behind a large one that is being copied; what is wrong ends what is behind it."""
    sites = 16 * 16 * 16 * 8
    with case.daemon(dims='16x16x16x8') as d, Client(d) as c:
        b = field(sites)
        data = b.tobytes()
        fd = memfd(data)
        with Local(c) as local:
            a = c.submit(20)
            for i in range(20):  # more than are read ahead
                local.put(a.request, i, data, fd)
            results = c.results(20)
            assert sorted((x.rhs, x.status) for x in results) == [(i, 0) for i in range(20)]
            credits = [e.next for name, e in c.later if name == 'credit' and e.request == a.request]
            assert credits == sorted(credits)
            c.ack(a.request)
        with Local(c) as local:
            a = c.submit(4)
            d.process.send_signal(signal.SIGSTOP)
            for i in range(4):
                local.put(a.request, i, data, fd, **({'checksum': 1} if i == 2 else {}))
            d.process.send_signal(signal.SIGCONT)
            assert local.is_closed()
        assert d.log('connection closed: the checksum of a field is')
        c.upload(a, [b] * 4, begin=2 * len(data))
        assert sorted((x.rhs, x.status) for x in c.results(4)) == [(i, 0) for i in range(4)]
        with Local(c) as local:
            a = c.submit(3)
            d.process.send_signal(signal.SIGSTOP)
            for i in (0, 2):  # none may be left out
                local.put(a.request, i, data, fd)
            d.process.send_signal(signal.SIGCONT)
            assert local.is_closed()
        assert d.log('rhs = 2 where 1 is next')


@tap.test
def the_daemon_may_have_no_local_socket(case):
    with case.daemon('--local', 'no') as d, Client(d) as c:
        assert not c.welcome.HasField('local_path')
        check_solves(c)
        assert c.status().counters.bytes_local == 0


@tap.test
def many_fields_lie_in_one_descriptor(case):
    """At offsets that are no multiples of a page; chunks and descriptors can be mixed."""
    with case.daemon() as d, Client(d) as c, Local(c) as local:
        fields = [field() for _ in range(4)]
        fd = memfd(b'xyz' + b''.join(b.tobytes() for b in fields))
        a = c.submit(4)
        local.put(a.request, 0, fields[0].tobytes(), fd, 3)
        credit_for(c, FIELD)
        c.upload(a, fields[:2], chunk=1000, begin=FIELD)
        piece = fields[2].tobytes()[:1000]
        c.data.send(frame(UPLOAD, a.request, 2, piece, FIELD, 0, 0))
        d.status_when(lambda s: s.counters.bytes_in == 2 * FIELD + 1000)
        for i in (2, 3):  # one has begun by chunks: that is as if it had not
            local.put(a.request, i, fields[i].tobytes(), fd, 3 + i * FIELD)
        os.close(fd)
        for r, b in zip(c.results(4), fields):
            assert r.status == 0 and np.array_equal(local.fetch(r), 2 * b), r


@tap.test
def what_is_not_wanted_is_passed_over(case):
    with case.daemon() as d, Client(d) as c, Local(c) as local:
        fields = [field() for _ in range(3)]
        a = c.submit(3)
        c.send(cancel=qk.Cancel(request=a.request, rhs=[0]))
        assert c.expect('result').status == STATUS['CANCELLED']
        local.put(a.request, 0, fields[0].tobytes())
        credit_for(c, FIELD)
        local.put(a.request, 0, fields[0].tobytes())  # again
        for i in (1, 2):
            local.put(a.request, i, fields[i].tobytes())
        for r, b in zip(c.results(2), fields[1:]):
            assert r.status == 0 and np.array_equal(local.fetch(r), 2 * b), r
        assert c.status().counters.bytes_in == 2 * FIELD
        c.ack(a.request)
        c.ping()
        local.put(a.request, 0, fields[0].tobytes())  # of a request that is over
        b = c.submit(1, sink=qk.SINK_NONE)
        local.put(b.request, 0, fields[0].tobytes())
        r = c.expect('result')
        assert r.status == 0 and local.fetch(r) is None, r


@tap.test
def who_writes_meanwhile_hurts_only_itself(case):
    """The checksum is of what the daemon has read: a field that is not what it is said to be closes the connection."""
    with case.daemon() as d, Client(d) as c, Local(c) as local:
        a = c.submit(1)
        b = field()
        local.put(a.request, 0, b.tobytes(), checksum=1)
        assert local.is_closed()
        c.upload(a, [b])  # by chunks it goes on
        r, = c.results(1)
        assert np.array_equal(c.fetch(r), 2 * b)
        check_alive(d)


@tap.test
def a_field_that_nobody_waits_for_may_be_anything(case):
    """Its client may have written the next one there when it had cancelled, and keeps its connection."""
    with case.daemon(dims='16x16x16x16') as d, Client(d) as c, Local(c) as local:
        data = field(16**4).tobytes()
        fd = memfd(data)
        a = c.submit(8)
        d.process.send_signal(signal.SIGSTOP)
        for i in range(8):
            local.put(a.request, i, data, fd, **({'checksum': 1} if i == 7 else {}))
        c.send(cancel=qk.Cancel(request=a.request, rhs=[7]))
        d.process.send_signal(signal.SIGCONT)
        results = c.results(8)
        assert sorted((x.rhs, x.status) for x in results) == [(i, 0) for i in range(7)] + [(7, 203)]
        b = c.submit(1)
        local.put(b.request, 0, data, fd)
        assert [x.status for x in c.results(1)] == [0]


def offences(a):
    """name: what a connection does to be closed."""
    data = field().tobytes()

    def with_fd(fd):
        def send(local):
            local.put(a.request, 0, data, fd())
        return send

    def pipe():
        return os.pipe()[0]

    def file():
        f = tempfile.TemporaryFile()
        f.write(data)
        f.flush()
        return os.dup(f.fileno())

    def shm():
        fd, name = tempfile.mkstemp(dir='/dev/shm')
        os.unlink(name)
        os.write(fd, data)
        return fd

    def write_only():
        fd = memfd(data)
        return os.open('/proc/self/fd/%d' % fd, os.O_WRONLY)

    return {
        'no seals': with_fd(lambda: memfd(data, 0)),
        'half of the seals': with_fd(lambda: memfd(data, fcntl.F_SEAL_SHRINK)),
        'too small': with_fd(lambda: memfd(data[:-1])),
        'a pipe': with_fd(pipe), 'a file': with_fd(file), 'a file in /dev/shm': with_fd(shm), 'write only': with_fd(write_only),
        'a device': with_fd(lambda: os.open('/dev/zero', os.O_RDWR)),
        'a socket': with_fd(lambda: socket.socket().detach()),
        'an offset behind the end': lambda local: local.put(a.request, 0, data, offset=1),
        'a huge offset': lambda local: local.put(a.request, 0, data, offset=2**64 - 8),
        'not the next': lambda local: local.put(a.request, 1, data),
        'no such rhs': lambda local: local.put(a.request, 2**32 - 1, data),
        'no such request': lambda local: local.put(a.request + 9, 0, data),
        'no descriptor': lambda local: local.send(put=qk.LocalPut(request=a.request, rhs=0, offset=0, checksum=0)),
        'two descriptors': lambda local: local.send([memfd(data), memfd(data)],
                                                    put=qk.LocalPut(request=a.request, rhs=0, offset=0, checksum=0)),
        'many descriptors': lambda local: local.send([memfd(data)] * 200,
                                                     put=qk.LocalPut(request=a.request, rhs=0, offset=0, checksum=0)),
        'a descriptor for nothing': lambda local: local.send([memfd(data)], fetch=qk.LocalFetch(request=a.request, rhs=0)),
        'garbage': lambda local: local.send_bytes(b'\xff' * 100),
        'a long message': lambda local: local.send_bytes(b'\x12' * 100000),
        'nothing in it': lambda local: local.send_bytes(qk.LocalRequest().SerializeToString() + b'\xa0\x06\x01'),
        'bound twice': lambda local: local.send(bind=qk.LocalBind(client_id=local.client.client_id,
                                                                  token=local.client.welcome.token)),
    }


@tap.test
def offences_close_the_connection_and_nothing_else(case):
    with case.daemon() as d, Client(d) as c:
        a = c.submit(2)
        before = descriptors(d)
        dropped = c.status().counters.dropped
        for i, (name, offend) in enumerate(offences(a).items()):
            with Local(c) as local:
                offend(local)
                assert local.is_closed(), name
            s = d.status_when(lambda s: s.counters.dropped > dropped)
            assert s.counters.dropped == dropped + 1 and s.counters.sessions == 1, (name, s)
            dropped = s.counters.dropped
        settled(d, c, before)
        fields = [field() for _ in range(2)]
        with Local(c) as local:
            for i, b in enumerate(fields):
                local.put(a.request, i, b.tobytes())
            for r, b in zip(c.results(2), fields):
                assert np.array_equal(local.fetch(r), 2 * b)
            c.ack(a.request)
        s = d.status_when(lambda s: s.counters.requests == 0)
        assert s.memory_used == 0
        assert d.terminate() == 0


@tap.test
def only_who_is_bound_is_heard(case):
    with case.daemon() as d, Client(d) as c, Client(d) as other:
        a = c.submit(1)
        with Local(c, bind=False) as local:
            local.put(a.request, 0, field().tobytes())
            assert local.is_closed()
        for client_id, token in ((c.client_id, other.welcome.token), (os.urandom(16), c.welcome.token), (b'', b''),
                                 (c.client_id, b'x' * 100)):
            with Local(c) as right, Local(c, bind=False) as local:
                local.send(bind=qk.LocalBind(client_id=client_id, token=token))
                assert local.is_closed()
                right.send(fetch=qk.LocalFetch(request=a.request, rhs=0))  # is there still
                assert qk.LocalSolution.FromString(right.socket.recv(256)).bytes == 0
        with Local(c) as first, Local(c):
            assert first.is_closed()  # a session has one
        with Local(other) as local:
            other.send(goodbye=qk.Goodbye())
            assert local.is_closed()  # it goes with its session
        with Local(c, bind=False) as local:
            assert local.is_closed()  # who does not say who it is


@tap.test
def another_user_is_not_let_in(case):
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    with case.daemon() as d, Client(d) as c:
        path = c.welcome.local_path

        def as_nobody():
            child = os.fork()
            if child == 0:
                os.setgid(65534)
                os.setuid(65534)
                code = 3
                try:
                    with Local(c) as local:
                        code = 1 if local.is_closed() else 2
                except PermissionError:
                    code = 0
                except (BrokenPipeError, ConnectionResetError):
                    code = 1
                finally:
                    os._exit(code)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        assert as_nobody() == 0  # neither folder nor socket
        up = os.path.dirname(path)
        while up != tempfile.gettempdir():
            os.chmod(up, 0o755)
            up = os.path.dirname(up)
        assert as_nobody() == 0  # not the socket
        os.chmod(path, 0o666)
        assert as_nobody() == 1  # closed, whoever could open it
        assert d.log('its peer runs as another user')
        os.chmod(os.path.dirname(path), 0o700)
        check_alive(d)


@tap.test
def clients_may_die_at_any_time(case):
    with case.daemon() as d, Client(d) as watcher:
        before = descriptors(d)
        for i in range(20):
            child = os.fork()
            if child == 0:
                try:
                    c = Client(d_of(d))
                    local = Local(c)
                    a = c.submit(8)
                    for k in range(8):
                        local.put(a.request, k, field().tobytes())
                    if i % 2:
                        c.expect('result')
                        for k in range(30):
                            local.send(fetch=qk.LocalFetch(request=a.request, rhs=0))
                finally:
                    os.kill(os.getpid(), signal.SIGKILL)
            os.waitpid(child, 0)
            with Client(d) as c:
                check_solves(c, 1)
                c.send(goodbye=qk.Goodbye())
        settled(d, watcher, before)


class d_of:
    """A daemon as a forked child sees it: with a ZeroMQ context of its own."""

    def __init__(self, d):
        import zmq
        self.endpoint, self.data_endpoint, self.context = d.endpoint, d.data_endpoint, zmq.Context()


@tap.test
def one_that_does_not_read_is_closed(case):
    with case.daemon() as d, Client(d) as c, Local(c) as local:
        a = c.submit(1)
        local.put(a.request, 0, field().tobytes())
        r, = c.results(1)
        before = descriptors(d)
        try:
            for _ in range(100000):
                local.send(fetch=qk.LocalFetch(request=a.request, rhs=0))
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert d.log('does not read')
        settled(d, c, before)
        assert c.fetch(r) is not None


@tap.test
def any_allocation_can_fail(case):
    """The connection closes and chunks go on, or the right-hand side ends; no memory is left."""
    ended = []
    for n in range(20, 80):  # until those of the field are behind
        if STATUS['NO_MEMORY'] in ended and ended[-3:] == [0, 0, 0]:
            break
        with case.daemon(env={'QK_FAULTS': 'alloc:%d' % n}, wait=None) as d:
            if not (d.endpoint and d.log('ready: ')):
                continue
            with Client(d, hello=False) as c:
                c.send(hello=qk.Hello(version=1, client_id=c.client_id))
                name, c.welcome = c.receive()
                if name != 'welcome':
                    continue
                c.bind()
                accepted = c.submit(1, expect=None) or c.receive()
                if accepted[0] != 'accepted':
                    continue
                b = field()
                try:
                    with Local(c) as local:
                        local.put(1, 0, b.tobytes())
                        local.send(fetch=qk.LocalFetch(request=1, rhs=0))  # is read behind the put
                        if not local.socket.recv(256):
                            raise BrokenPipeError
                        credit_for(c, FIELD)
                except (BrokenPipeError, ConnectionResetError):
                    c.upload(accepted[1], [b])
                r = c.expect('result')
                assert r.status in (0, STATUS['NO_MEMORY']), r
                assert r.status != 0 or np.array_equal(c.fetch(r), 2 * b)
                ended.append(r.status)
                c.ack(1)
                s = d.status_when(lambda s: s.counters.requests == 0)
                assert s.memory_used == 0, (n, s)
    assert 0 in ended and STATUS['NO_MEMORY'] in ended, ended


@tap.test
def what_was_put_outlives_the_front(case):
    """A field that CREDIT has told of is in the journal, the segment and the spool."""
    with tempfile.TemporaryDirectory() as state:
        fields = [field() for _ in range(2)]
        with case.daemon('--state', state) as d, Client(d) as c, Local(c) as local:
            a = c.submit(2, max_iter=fake.HOLD_ONCE)
            local.put(a.request, 0, fields[0].tobytes())
            credit_for(c, FIELD)
            assert d.log('rhs 0 is on the disk')
            d.process.kill()
            d.process.wait()
        with case.daemon('--state', state, env={'FAKE_BEFORE': '1'}) as d, Client(d, c.client_id) as c2, Local(c2) as local:
            c2.submit(2, request=a.request, max_iter=fake.HOLD_ONCE, expect=None)
            again = c2.expect('accepted', skip=('result', 'progress'))  # which may have ended before, and is told again
            assert again.repeated_submit and again.upload_next == FIELD, again
            local.put(a.request, 1, fields[1].tobytes())
            ended = {}
            while len(ended) < 2:
                r = c2.expect('result')
                ended[r.rhs] = r
            for i, b in enumerate(fields):
                assert ended[i].status == 0 and np.array_equal(local.fetch(ended[i]), 2 * b), ended
            c2.ack(a.request)
            d.status_when(lambda s: s.counters.requests == 0 and not os.listdir(os.path.join(state, 'spool')))


@tap.test
def the_front_takes_the_descriptors_that_it_may_have(case):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with case.daemon() as d:
            most = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
            assert resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE) == (most, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@tap.test
def the_front_runs_out_of_descriptors(case):
    """Connections beyond what there is wait or are closed; nobody who is served notices."""
    with case.daemon() as d, Client(d) as c, Local(c) as local:
        limit = resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (descriptors(d) + 4, limit[1]))
        crowd = [Local(c, bind=False) for _ in range(20)]
        c.ping()
        for one in crowd:
            one.socket.close()
        resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, limit)
        a = c.submit(1)
        b = field()
        local.put(a.request, 0, b.tobytes())
        r, = c.results(1)
        assert np.array_equal(local.fetch(r), 2 * b)
        with Local(c) as later:
            assert np.array_equal(later.fetch(r), 2 * b)


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
