#!/usr/bin/env python3
"""Runs of zeros in uploads: test_front_zeros.py QUARKD

The engine that pretends looks at nothing beside the slab of a source, and says in the norms of RESULT which it was.
"""
import os
import random
import sys

import tap

try:
    import numpy as np
    import front_zeros as fz
    from front_case import LATER, Case, State, check_solves, fake, field, kill, memory_of, once_more, rng
    from front_driver import MIB, STATUS, UPLOAD, Client, block_checksum, checksum, frame, qk
    from front_local import Local, memfd
    from front_parts import cut, join, pasted, settled
    from state_case import again, check, results_of, spooled
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

SLICE = 64 * 24 * 8    # bytes of a time slice of 4x4x4x4, three pages
FIELD = 4 * SLICE
THREADS = ('0', '2')   # who moves bytes: the loop, threads


def at(*places, sites=256):
    """Zero but for one number at each of these sites."""
    b = np.zeros(sites * 12, complex)
    for site in places:
        b[site * 12 + 5] = rng.standard_normal() + 1j
    return b


def slab(result):
    """(first, count) of the FILL; None: it named none."""
    return None if result.norm_b == 1 else (int(result.norm_x), int(result.norm_b) - 10)


def source_of(daemon):
    """The one object in its memory."""
    path, = (os.path.join('/dev/shm', n) for n in os.listdir('/dev/shm') if n.startswith('quarkd-%d-' % daemon.process.pid))
    return path


def with_runs(n, dtype=complex):
    """A field with runs of zeros of all lengths, anywhere."""
    b = rng.standard_normal(2 * n).view(complex)
    for _ in range(random.randrange(1, 6)):
        begin, length = random.randrange(n), random.choice((1, 10, 300, n // 3, n))
        b[begin:begin + length] = 0
    return b.astype(dtype)


@tap.test
def runs_are_their_bytes(case):
    """In both versions of the header, by the loop and by threads; only what is not zero is counted, and the slab is found."""
    some = [(at(70), (1, 1)), (at(0), (0, 1)), (at(255), (3, 1)), (at(3, 130), (0, 3)), (at(), (0, 0)), (field(), None), (at(1, 250), None)]
    fields = [b for b, _ in some] + [with_runs(3072) for _ in range(20)]
    for threads in THREADS:
        with case.daemon('--data-threads', threads) as d:
            for blocks in (False, True):
                with Client(d, blocks=blocks) as c:
                    assert 3 in c.welcome.feature
                    before = d.status().counters.bytes_in
                    a = c.submit(len(fields))
                    sent = fz.upload(c, a, fields, least=random.choice((1, 100, 4096)), chunk=5000)
                    results = by_rhs(c.results(len(fields)))
                    check(c, results, fields)
                    assert d.status().counters.bytes_in - before == sent < len(fields) * FIELD
                    assert [slab(r) for r in results[:len(some)]] == [s for _, s in some], results
                    c.ack(a.request)
            settled(d)


@tap.test
def a_negative_zero_is_not_zero(case):
    """What is sent as a chunk stays what it is."""
    b = np.full(3072, complex(-0.0, -0.0))
    with case.daemon() as d, Client(d) as c:
        a = c.submit(1, max_iter=fake.HOLD, sink=qk.SINK_NONE)
        assert fz.upload(c, a, [b], least=8) == FIELD
        d.status_when(lambda s: s.counters.running == 1)
        with open(source_of(d), 'rb') as f:
            assert f.read() == b.tobytes()
        c.send(cancel=qk.Cancel(request=1))
        c.results(1)


@tap.test
def a_point_source_costs_a_slice(case):
    """Of a lattice 32x32x32x64, on the wire and in memory."""
    sites, slice_bytes = 32 ** 3, 32 ** 3 * 24 * 8
    b = at(sites * 17 + 12345, sites=64 * sites)
    with case.daemon('--data-threads', '1', dims='32x32x32x64') as d, Client(d, blocks=True) as c:
        accepted = c.submit(1, max_iter=fake.HOLD, sink=qk.SINK_NONE)
        assert accepted.field_bytes == 64 * slice_bytes
        # as who sends whole slices, and knows no more of the source
        data, begin = b.tobytes(), 17 * slice_bytes
        c.data.send(fz.zeros(1, 0, begin, len(data), 0, blocks=True))
        until = 0
        while until < begin + slice_bytes:
            until = max(until, c.expect('credit', skip=('progress',)).until)
        for offset in range(begin, begin + slice_bytes, MIB):
            c.data.send(frame(UPLOAD, 1, 0, data[offset:min(offset + MIB, begin + slice_bytes)], len(data), offset, version=2))
        c.data.send(fz.zeros(1, 0, 46 * slice_bytes, len(data), 18 * slice_bytes, block_checksum(data), blocks=True))
        s = d.status_when(lambda s: s.counters.running == 1)
        assert s.counters.bytes_in == slice_bytes == 6291456, s
        path = source_of(d)
        assert os.path.getsize(path) == len(data) and os.stat(path).st_blocks * 512 <= slice_bytes + MIB, os.stat(path)
        c.send(cancel=qk.Cancel(request=1))
        assert c.results(1)[0].status == STATUS['CANCELLED']


@tap.test
def runs_and_chunks_keep_their_order(case):
    """They come faster than a thread takes them, over many right-hand sides; the last run of each is checked behind its chunks."""
    n = 40
    fields = [with_runs(3072) for _ in range(n)]
    with case.daemon('--data-threads', '2') as d, Client(d) as c:
        a = c.submit(n, sink=qk.SINK_NONE)
        messages = [fz.message(c, a.request, k, b.tobytes(), *piece) for k, b in enumerate(fields) for piece in fz.pieces(b.tobytes(), 64, 1000)]
        assert n * FIELD == a.upload_until, a  # nothing waits
        for m in messages:
            c.data.send(m)
        assert all(r.status == 0 for r in c.results(n))
        bad = c.submit(1)  # the chunk before the run has been changed on its way: only the run can tell
        data = at(1).tobytes()
        c.data.send(frame(UPLOAD, bad.request, 0, b'\1' + data[1:1000], FIELD, 0))
        c.data.send(fz.zeros(bad.request, 0, FIELD - 1000, FIELD, 1000, checksum(data)))
        c.error('BAD_CHECKSUM')
        check_solves_of_others(d)


def by_rhs(results):
    return sorted(results, key=lambda r: r.rhs)


def check_solves_of_others(d):
    with Client(d) as c:
        check_solves(c, 1)
        c.send(goodbye=qk.Goodbye())


def offences(c, request):
    """[(messages, status)]: what ends the session."""
    big, data = 2 ** 31, bytes(FIELD)
    run = lambda count, offset=0, **more: fz.zeros(request, 0, count, FIELD, offset, **more)
    return [
        ([run(0)], 'BAD_PROTOCOL'),
        ([fz.zeros(request, 0, big + 1, 2 ** 40, 0)], 'TOO_LARGE'),
        ([fz.zeros(request, 0, big, 2 ** 40, 0)], 'BAD_PROTOCOL'),             # field_bytes
        ([run(FIELD + 1)], 'BAD_PROTOCOL'),                                    # over the end of its field
        ([run(SLICE), run(4 * SLICE, SLICE)], 'BAD_PROTOCOL'),
        ([run(100, 100)], 'BAD_PROTOCOL'),                                     # not the next one
        ([run(100), run(100, 101)], 'BAD_PROTOCOL'),
        ([fz.zeros(request, 7, 100, FIELD, 0)], 'BAD_PROTOCOL'),               # rhs
        ([fz.zeros(request + 1, 0, 100, FIELD, 0)], 'BAD_PROTOCOL'),           # of a request that was never made
        ([fz.zeros(request, 1, 100, FIELD, 0)], 'BAD_PROTOCOL'),               # of the RHS behind the next
        ([run(100, chunk_checksum=1)], 'BAD_CHECKSUM'),
        ([run(100) + b'\0' * 100], 'BAD_PROTOCOL'),                            # a payload
        ([run(100, field_checksum=5)], 'BAD_PROTOCOL'),                        # not at the end
        ([run(FIELD, field_checksum=checksum(data) + 1)], 'BAD_CHECKSUM'),
        ([run(FIELD, field_checksum=block_checksum(data))], 'BAD_CHECKSUM'),   # of blocks, in version 1
        ([run(FIELD, field_checksum=checksum(data), blocks=True)], 'BAD_CHECKSUM'),
        ([run(100), run(100, 100, blocks=True)], 'BAD_PROTOCOL'),              # two versions in a field
        ([run(100), frame(UPLOAD, request, 0, data[:100], FIELD, 200)], 'BAD_PROTOCOL'),
    ]


@tap.test
def bad_runs_end_their_session_alone(case):
    with case.daemon('--data-threads', '1') as d:
        for k in range(18):
            with Client(d) as c:
                a = c.submit(2)
                messages, status = offences(c, a.request)[k]
                for m in messages:
                    c.data.send(m)
                try:
                    c.error(status)
                except AssertionError as e:
                    raise AssertionError('offence %d: %s' % (k, e)) from e
        assert len(offences(c, 1)) == 18
        for more in dict(source=qk.SOURCE_POINT), dict(grid=[2, 1, 1, 1]):  # of which nothing is to be sent
            with Client(d) as c:
                a = c.submit(1, **more)
                c.data.send(fz.zeros(a.request, 0, 100, a.field_bytes, 0))
                c.error('BAD_PROTOCOL')
        check_solves_of_others(d)
        d.status_when(lambda s: s.memory_used == 0)


@tap.test
def what_follows_a_run_waits_for_credit(case):
    """The run itself needs none, a chunk behind it what the CREDIT of the run allows."""
    sites = 16 * 16 * 16 * 16  # 12 MiB a field, the credit is 8
    for early in (True, False):
        with case.daemon(dims='16x16x16x16') as d, Client(d) as c:
            a = c.submit(1, sink=qk.SINK_NONE)
            data = at(sites - 1, sites=sites).tobytes()
            last = frame(UPLOAD, 1, 0, data[-MIB:], len(data), len(data) - MIB, checksum(data))
            assert a.upload_until == 8 * MIB < len(data) - MIB
            if early:
                c.data.send(frame(UPLOAD, 1, 0, data[:1000], len(data), 0))
                c.data.send(frame(UPLOAD, 1, 0, data[1000:2000], len(data), 1000))
            c.data.send(fz.zeros(1, 0, len(data) - MIB - (2000 if early else 0), len(data), 2000 if early else 0))
            if not early:
                assert c.expect('credit', skip=('progress',)).until == len(data)
            else:
                while c.expect('credit', skip=('progress',)).until < len(data):
                    pass
            c.data.send(last)
            assert c.results(1)[0].status == 0
    with case.daemon(dims='16x16x16x16') as d, Client(d) as c:
        a = c.submit(2, sink=qk.SINK_NONE)
        c.data.send(frame(UPLOAD, 1, 0, data[:MIB], len(data), 0))
        c.data.send(frame(UPLOAD, 1, 1, data[:MIB], len(data), 0))  # far beyond what was granted
        c.error('BAD_PROTOCOL')


@tap.test
def spare_memory_is_not_taken_for_zeros(case):
    """Objects that carried other fields before are there again: a run over them is zeros, and takes no memory in the end."""
    sites = 8 * 8 * 8 * 32  # 6 MiB
    with case.daemon('--data-threads', '1', dims='8x8x8x32') as d, Client(d, blocks=True) as c:
        for _ in range(3):
            full = field(sites)
            some = field(sites)
            some[some.size // 4:] = 0
            some[-1] = 1  # begins with whole chunks, as what is sent whole does
            a = c.submit(2)
            fz.upload(c, a, [full, some])
            r = c.results(2)
            check(c, r, [full, some])
            c.ack(a.request)
            c.ping()
        b = at(sites // 2, sites=sites)
        a = c.submit(1)
        fz.upload(c, a, [b])
        r, = c.results(1)
        check(c, [r], [b])
        assert slab(r) == (16, 1)


@tap.test
def an_upload_goes_on_within_a_run(case):
    """After a break of the connection, with other runs than before; what has come before is left out."""
    b = at(10, 200)
    data = b.tobytes()
    begin, end = fz.runs(data, 4096)[1] if fz.runs(data, 4096)[0][0] == 0 else fz.runs(data, 4096)[0]
    middle = (begin + end) // 2
    for blocks in (False, True):
        with case.daemon('--data-threads', '1') as d:
            with Client(d, blocks=blocks) as c:
                a = c.submit(1)
                c.data.send(fz.message(c, 1, 0, data, 0, begin, False))
                c.data.send(fz.message(c, 1, 0, data, begin, middle - begin, True))
                while once_more(c, 1, 1).upload_next != middle:
                    pass
            with Client(d, c.client_id, blocks=blocks) as c:
                accepted = once_more(c, 1, 1)
                assert accepted.upload_next == middle
                c.data.send(fz.message(c, 1, 0, data, begin + 1, end - begin - 1, True))  # the middle of it is left out
                c.data.send(fz.message(c, 1, 0, data, begin, end - begin, True))          # all of it
                fz.upload(c, accepted, [b], begin=end)
                check(c, results_of(c, 1, 1), [b])


@tap.test
def runs_outlive_front_and_machine(case):
    """Killed in the middle of a run, and where sources wait: from memory, then from the spool."""
    sites, dims = 8 * 8 * 8 * 16, '8x8x8x16'
    fields = [at(700, sites=sites), with_runs(sites * 12), at(sites=sites), at(5, sites - 5, sites=sites)]
    data = fields[3].tobytes()
    begin, end = fz.runs(data, MIB)[0]
    for machine in (False, True):
        with State(case) as state:
            with state.daemon('--slots', '1', dims=dims) as d, Client(d, blocks=machine) as c:
                a = c.submit(4, max_iter=fake.HOLD_ONCE)
                fz.upload(c, a, fields[:3])
                middle = 3 * len(data) + begin + MIB // 2 + 77
                c.data.send(fz.message(c, 1, 3, data, 0, begin, False))
                c.data.send(fz.message(c, 1, 3, data, begin, MIB // 2 + 77, True))
                while once_more(c, 4, 1, max_iter=fake.HOLD_ONCE).upload_next != middle:
                    pass
                spooled(d, 3)
                kill(d)
            blocks = sum(os.stat(os.path.join(state.dir, 'spool', n)).st_blocks * 512 for n in state.spool())
            assert blocks < 2 * len(data), blocks  # zeros are holes there, too
            if machine:
                state.end_the_machine()
            with state.daemon('--slots', '1', dims=dims, env=LATER) as d:
                with Client(d, c.client_id, blocks=machine) as c:
                    accepted = once_more(c, 4, 1, max_iter=fake.HOLD_ONCE)
                    assert accepted.upload_next == (3 * len(data) if machine else middle)
                    fz.upload(c, accepted, fields, begin=accepted.upload_next)
                    results = results_of(c, 1, 4)
                    check(c, results, fields)
                    if not machine:
                        assert [slab(r) for r in (results[0], results[2], results[3])] == [(1, 1), (0, 0), None]
                    c.ack(1)
                    d.status_when(lambda s: s.counters.requests == 0 and not state.spool())


@tap.test
def damaged_sources_with_holes_are_not_believed(case):
    """Found by their checksum, which is that of all bytes: data where a hole was, a hole where data were."""
    for damage in ('data', 'hole'):
        with State(case) as state:
            b = at(70)
            with state.daemon('--slots', '1') as d, Client(d, blocks=True) as c:
                a = c.submit(2, max_iter=fake.HOLD_ONCE)
                fz.upload(c, a, [b, b])
                spooled(d, 2)
                d.status_when(lambda s: s.counters.running == 1 and s.counters.queued == 1)
                kill(d)
            for path in [p for p in state.memory() if os.path.getsize(p) == FIELD and os.stat(p).st_blocks > 0]:
                with open(path, 'r+b') as f:
                    if damage == 'data':
                        f.write(b'\1')
                    else:
                        f.truncate(0)
                        f.truncate(FIELD)
            with state.daemon('--slots', '1', env=LATER) as d:
                c, _ = again(d, c, 2, max_iter=fake.HOLD_ONCE)
                with c:
                    d.log('is damaged')
                    check(c, results_of(c, 1, 2), [b, b])


def taken_over(daemon, owner, accepted, part):
    """Another client that has the part now, and its ACCEPTED: refused while what came before is on its way into memory."""
    c = Client(daemon)
    while True:
        c.request += 1
        c.send(join=qk.Join(request=c.request, owner=owner.client_id, owner_request=accepted.request, token=accepted.join, part=part))
        name, body = c.receive_new()
        if name == 'accepted':
            return c, body
        assert name == 'rejected' and body.status == STATUS['BUSY'], body


@tap.test
def parts_have_runs_of_their_own(case):
    """Rows of x of several parts share pages; the slab is that of the whole. A part that is sent once more is what came last."""
    for grid, threads in (((2, 1, 2, 1), '2'), ((1, 1, 1, 4), '0'), ((2, 2, 1, 2), '1')):
        n = int(np.prod(grid))
        b = [x.reshape(4, 4, 4, 4, 12) for x in (at(70, 75), at(), with_runs(3072), at(0, 255), field())]
        with case.daemon('--data-threads', threads) as d, Client(d) as owner:
            a = owner.submit(len(b), grid=grid, part=0)
            have = [(owner, a)] + [(c, join(c, owner, a, p + 1)) for p, c in enumerate(Client(d) for _ in range(n - 1))]
            # one that has sent other numbers is replaced before it has sent all of them
            c, h = have[-1]
            c.data.send(frame(UPLOAD, h.request, 0, b'\7' * 1000, h.field_bytes, 0))
            d.status_when(lambda s: s.counters.bytes_in == 1000)
            have[-1] = taken_over(d, owner, a, n - 1)
            for p in random.sample(range(n), n):
                fz.upload(*have[p], [cut(x, grid, p) for x in b], least=random.choice((1, 64, 3000)))
            parts = [[(r, c.fetch(r)) for r in by_rhs(c.results(len(b)))] for c, _ in have]
            for i, x in enumerate(b):
                shape = cut(x, grid, 0).shape
                assert np.array_equal(pasted([p[i][1].reshape(shape) for p in parts], grid), 2 * x), (grid, i)
            assert [slab(r) for r, _ in parts[0]][1] == (0, 0), parts[0][1]
            for c, _ in have[1:]:
                c.close()


@tap.test
def sparse_puts_leave_holes_out(case):
    """Their bytes count as far as they were copied; of a put that is not sparse all are."""
    sites, dims = 8 * 8 * 8 * 16, '8x8x8x16'
    b = [at(700, sites=sites), field(sites), at(sites=sites), at(0, sites - 1, sites=sites), with_runs(sites * 12)]
    with case.daemon(dims=dims) as d, Client(d) as c, Local(c) as local:
        a = c.submit(len(b))
        for i, x in enumerate(b):
            fz.put(local, a.request, i, x.tobytes(), offset=4096 * i + i)
        results = c.results(len(b))
        check(c, results, b)
        assert [slab(r) for r in (results[0], results[2])] == [(1, 1), (0, 0)]
        s = d.status()
        assert len(b[1].tobytes()) < s.counters.bytes_local == s.counters.bytes_in < 3 * len(b[1].tobytes())
        c.ack(a.request)
        one = c.submit(1)
        fz.put(local, one.request, 0, b[0].tobytes(), sparse=False, checksum=checksum(b[0].tobytes()))
        check(c, c.results(1), b[:1])
        assert d.status().counters.bytes_local - s.counters.bytes_local == len(b[0].tobytes())


@tap.test
def a_sparse_put_has_the_checksum_of_blocks(case):
    b = at(70).tobytes()
    with case.daemon() as d:
        for wrong in (dict(checksum=checksum(b)), dict(checksum=block_checksum(b) + 1), dict(sparse=False)):
            with Client(d) as c, Local(c) as local:
                a = c.submit(1)
                fz.put(local, a.request, 0, b, **wrong)
                assert local.is_closed()
                c.upload(a, [np.frombuffer(b, complex)])  # the session goes on by chunks
                assert c.results(1)[0].status == 0
        check_solves_of_others(d)


@tap.test
def sparse_puts_of_parts(case):
    grid = (2, 1, 1, 2)
    b = [x.reshape(4, 4, 4, 4, 12) for x in (at(120), field(), at(), with_runs(3072))]
    with case.daemon() as d, Client(d) as owner, Client(d) as c:
        a = owner.submit(len(b), grid=grid, part=0)
        with Local(owner) as mine, Local(c) as local:
            have = [(owner, mine, a)] + [(c, local, join(c, owner, a, p)) for p in range(1, 4)]
            for p, (_, l, h) in enumerate(have):
                for i, x in enumerate(b):
                    fz.put(l, h.request, i, cut(x, grid, p).tobytes())
            for r in c.results(3 * len(b)):
                assert np.array_equal(c.fetch(r), 2 * cut(b[r.rhs], grid, r.request).ravel()), r
            results = by_rhs(owner.results(len(b)))
            for r in results:
                assert np.array_equal(owner.fetch(r), 2 * cut(b[r.rhs], grid, 0).ravel())
            assert [slab(r) for r in (results[0], results[2])] == [(1, 1), (0, 0)], results


@tap.test
def fields_of_setups_have_runs_too(case):
    """A clover term that is zero in most places: by chunks and runs, and by a sparse put. They are mapped: all their pages are there."""
    term = np.zeros((256, 72))
    term[100:120] = rng.standard_normal((20, 72))
    data, digests = term.tobytes(), []
    with case.daemon() as d:
        for how in ('plain', 'runs', 'sparse'):
            with Client(d, blocks=True) as c, Local(c) as local:
                c.request = 1
                c.send(field_open=qk.FieldOpen(request=1, kind=qk.FIELD_CLOVER, dims=[4, 4, 4, 4], dtype=qk.DTYPE_F64))
                a = c.expect('accepted')
                if how == 'sparse':
                    fz.put(local, 1, 0, data)
                else:
                    fz.upload(c, a, [term], least=4096 if how == 'runs' else len(data) + 1)
                r, = c.results(1)
                assert r.status == 0, r
                digests.append(r.digest)
                path = source_of(d)
                assert os.stat(path).st_blocks * 512 >= len(data), (how, os.stat(path))
                c.send(release=qk.Release(request=1))
                c.ping()
            settled(d)
    assert digests[0] == digests[1] == digests[2]


@tap.test
def runs_for_what_has_ended_are_taken(case):
    """Of an RHS that was cancelled: the stream goes on behind it. Of a request that is over: ignored."""
    with case.daemon('--data-threads', '1') as d, Client(d) as c:
        a = c.submit(3)
        c.send(cancel=qk.Cancel(request=1, rhs=[1]))
        assert c.results(1)[0].status == STATUS['CANCELLED']
        fields = [at(3), at(4), at(5)]
        fz.upload(c, a, fields)
        rs = {r.rhs: r for r in c.results(2)}
        check(c, [rs[0], rs[2]], [fields[0], fields[2]])
        c.ack(1)
        c.ping()
        c.data.send(fz.zeros(1, 0, 100, FIELD, 0))
        check_solves(c, 1)


@tap.test
def runs_over_the_local_bytes_of_an_old_put(case):
    """A put after half a field in runs counts alone; who goes on by chunks after a put goes on behind it."""
    b = [at(9), at(90), at(130)]
    with case.daemon() as d, Client(d) as c, Local(c) as local:
        a = c.submit(3)
        c.data.send(fz.zeros(1, 0, 2 * SLICE, FIELD, 0))
        local.put(1, 0, b[0].tobytes(), memfd(b[0].tobytes()))
        fz.put(local, 1, 1, b[1].tobytes())
        while True:
            name, body = c.receive_new()
            if name == 'credit' and body.next == 2 * FIELD:
                break
            if name != 'credit':
                c.later.append((name, body))
        fz.upload(c, a, b, begin=2 * FIELD)
        check(c, c.results(3), b)


@tap.test
def who_leaves_in_a_run_leaves_nothing(case):
    with case.daemon('--data-threads', '2', dims='16x16x16x16') as d:
        for k in range(20):
            with Client(d) as c:
                a = c.submit(2, sink=qk.SINK_NONE)
                c.data.send(fz.zeros(1, 0, a.field_bytes - 5 * k, a.field_bytes, 0, 0 if k else checksum(bytes(a.field_bytes))))
                if k % 3 == 0:
                    c.send(cancel=qk.Cancel(request=1))
                c.send(goodbye=qk.Goodbye())
        d.status_when(lambda s: s.memory_used == 0 and s.counters.sessions == 0)
        assert not memory_of(d.dir)


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
