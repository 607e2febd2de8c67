#!/usr/bin/env python3
"""Fields, sources and solutions in parts: JOIN, who has a part, what is whole again, what survives: test_front_parts.py QUARKD"""
import os
import random
import sys

import tap

try:
    import numpy as np
    from field_links import bytes_of, digest, noisy, noisy_term, open_field, term_digest, widened
    from front_case import State, fake, field, kill
    from front_driver import STATUS, UPLOAD, Client, checksum, frame, qk
    from front_local import Local
    from front_parts import answer, cut, feed, join, pasted, settled
    from setups_case import Setups
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

DIMS = (8, 4, 6, 12)
GRIDS = (2, 1, 1, 1), (2, 2, 3, 2), (1, 1, 2, 3), (1, 1, 1, 1)
LINKS = noisy(DIMS, 1)


def count(grid):
    return int(np.prod(grid))


def sent(links, single=False, reals=18):
    """As they go over the wire."""
    out = links if reals == 18 else links[..., :2, :]
    return np.ascontiguousarray(out, np.complex64 if single else complex)


def open_parts(client, grid, links=LINKS, single=False, reals=18, **more):
    return open_field(client, links, single, reals, grid=grid, **more)


def sources(n):
    return [field().reshape(4, 4, 4, 4, 4, 3) for _ in range(n)]


def ends(client, n):
    """n results, each once: what was repeated may come twice."""
    out = {}
    while len(out) < n:
        r = client.expect('result')
        out[r.request, r.rhs] = r
    return list(out.values())


@tap.test
def links_in_parts_are_those_that_go_whole(case):
    random.seed(5)
    with case.daemon() as d, Client(d) as owner:
        assert 2 in owner.welcome.feature
        for grid, single, reals, clients in ((GRIDS[0], False, 18, 1), (GRIDS[1], True, 18, 3), (GRIDS[1], False, 12, 8), (GRIDS[2], True, 12, 3),
                                             (GRIDS[3], False, 18, 1)):
            a = open_parts(owner, grid, single=single, reals=reals)
            assert (len(a.join), a.upload_until) == (16, 0)
            assert a.field_bytes * count(grid) == len(bytes_of(LINKS, single, reals))
            others = [Client(d) for _ in range(clients)]
            order = random.sample(range(count(grid)), count(grid))
            for k, p in enumerate(order):
                c = others[k % clients]
                b = join(c, owner, a, p)
                assert (b.field_bytes, b.nrhs, b.upload_next, len(b.join)) == (a.field_bytes, 1, 0, 0), b
                feed(c, b, [cut(sent(LINKS, single, reals), grid, p)], chunk=random.choice((1000, 4096, 1 << 20)))
            want = digest(widened(LINKS, single, reals))
            r = owner.expect('result')
            assert (r.status, r.digest, r.bytes) == (0, want, 0) and 0 <= r.unitarity < 1e-5, r
            for k in range(len(order)):
                r = others[k % clients].expect('result')
                assert (r.status, r.digest, r.bytes) == (0, want, 0), r
            for c in others:
                c.close()
            owner.send(release=qk.Release(request=a.request))
        settled(d)


@tap.test
def a_clover_term_goes_in_parts_too(case):
    grid, term = GRIDS[1], noisy_term(DIMS, 2)
    bad = term.copy()
    bad[11, 0, 1, 7, 3] = np.nan
    with case.daemon() as d, Client(d) as owner, Client(d) as other:
        for field_of, status, words in ((term, 0, ''), (bad, STATUS['BAD_ARGUMENT'], 'at x y z t = 7 1 0 11 (part 13) is not finite: number 3 of 72')):
            a = open_field(owner, LINKS, grid=grid, kind=qk.FIELD_CLOVER, reals=72)
            for p in random.sample(range(count(grid)), count(grid)):
                feed(other, join(other, owner, a, p), [cut(field_of, grid, p)])
            r = owner.expect('result')
            assert r.status == status and words in r.text and (status or r.digest == term_digest(term)), r
            for k in range(other.request - count(grid), other.request):
                other.ack(k + 1)
            other.ping()
            owner.send(release=qk.Release(request=a.request))
        settled(d)


@tap.test
def the_owner_may_have_a_part_itself(case):
    grid = GRIDS[2]
    with case.daemon() as d, Client(d) as owner, Client(d) as c:
        a = open_parts(owner, grid, part=3)
        assert a.upload_until > 0
        feed(owner, a, [cut(LINKS, grid, 3)])
        r = join(c, owner, a, 3, expect='rejected')
        assert r.status == STATUS['BAD_ARGUMENT'] and 'the owner has it itself' in r.text, r
        for p in set(range(6)) - {3}:
            feed(c, join(c, owner, a, p), [cut(LINKS, grid, p)])
        assert owner.expect('result').digest == digest(LINKS)
        # and now they are here: nothing is to be joined
        a = open_parts(owner, grid, digest=digest(LINKS))
        assert (a.upload_until, a.HasField('join')) == (0, False)
        assert owner.expect('result').status == 0


@tap.test
def solutions_in_parts_are_the_whole(case):
    for grid, parity, dtype in (((2, 1, 2, 2), qk.PARITY_ALL, qk.DTYPE_F64), ((2, 2, 1, 1), qk.PARITY_ODD, qk.DTYPE_F64), ((1, 1, 1, 4), qk.PARITY_ALL, qk.DTYPE_F32)):
        real = np.complex128 if dtype == qk.DTYPE_F64 else np.complex64
        n = 5
        b = [x.astype(real) for x in sources(n)]
        if parity:
            b = [x.reshape(4, 4, 4, 2, 2, 4, 3)[..., 0, :, :].copy() for x in b]
        with case.daemon() as d, Client(d) as owner:
            whole = [x for _, x in owner.solve([x.ravel() for x in b], real, parity=parity, dtype=dtype)]
            others = [Client(d) for _ in range(count(grid) - 1)]
            a = owner.submit(n, grid=grid, part=0, parity=parity, dtype=dtype)
            have = [(owner, a)] + [(c, join(c, owner, a, p + 1)) for p, c in enumerate(others)]
            where = [grid if not parity else grid] * len(have)
            for p in random.sample(range(len(have)), len(have)):
                feed(*have[p], [cut(x, where[p], p) for x in b])
            parts = []
            for c, h in have:
                parts.append([c.fetch(r, real) for r in c.results(n)])
            for i in range(n):
                shape = cut(b[i], grid, 0).shape
                assert np.array_equal(pasted([p[i].reshape(shape) for p in parts], grid).ravel(), whole[i]), i
            for c, h in have[1:]:
                c.ack(h.request)
                c.ping()
            used = d.status().memory_used
            assert used > n * whole[0].nbytes  # the owner has not acknowledged it
            owner.ack(a.request)
            settled(d)
            for c in others:
                c.close()


@tap.test
def generated_sources_kept_solutions_and_none(case):
    grid = (2, 1, 1, 2)
    with case.daemon() as d, Client(d) as owner, Client(d) as c:
        for sink in qk.SINK_KEEP, qk.SINK_NONE:
            a = owner.submit(2, source=qk.SOURCE_Z2, sink=sink, grid=grid, column=[qk.Column(seed=1), qk.Column(seed=2)])
            assert all((r.status, r.bytes) == (0, 0) for r in owner.results(2))
            h = [join(c, owner, a, p) for p in range(4)]  # after the end: the results come at once
            assert [x.upload_until for x in h] == [0] * 4
            rs = c.results(8)
            assert all(r.status == 0 and r.bytes == (h[0].field_bytes if sink == qk.SINK_KEEP else 0) for r in rs), rs
            if sink == qk.SINK_KEEP:
                whole = pasted([c.fetch(r).reshape(4 // 2, 4, 4, 4 // 2, 4, 3) for r in sorted((r for r in rs if r.rhs == 1), key=lambda r: r.request)], grid)
                assert whole.ravel()[0] != 0
            for x in h:
                c.ack(x.request)
            owner.ack(a.request)
            if sink == qk.SINK_KEEP:
                assert owner.submit(1, source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=a.request, rhs=1, t=-1)])
                assert owner.expect('result').status == 0
                owner.ack(owner.request)
                owner.send(release=qk.Release(request=a.request))
        settled(d)


@tap.test
def what_cannot_be_is_rejected(case):
    with case.daemon() as d, Client(d) as c, Client(d) as other, Client(d, user='else') as stranger:
        for how, words, more in (('BAD_GEOMETRY', 'the extent of z is 6, not a multiple of 4', dict(grid=[1, 1, 4, 1])),
                                 ('BAD_ARGUMENT', 'grid of 3 numbers', dict(grid=[1, 1, 2])),
                                 ('BAD_ARGUMENT', 'the parts in t are 0', dict(grid=[1, 1, 1, 0])),
                                 ('TOO_LARGE', 'the limit is 1024 parts', dict(grid=[1 << 31, 1 << 31, 1 << 31, 2])),
                                 ('TOO_LARGE', 'the limit is 1024 parts', dict(grid=[8, 4, 6, 12])),
                                 ('BAD_ARGUMENT', 'part = 4: the grid has 0 .. 3', dict(grid=[2, 2, 1, 1], part=4)),
                                 ('BAD_ARGUMENT', 'part = 0 needs a grid', dict(part=0))):
            r = open_field(c, LINKS, **more, expect='rejected')
            assert (r.status, words in r.text) == (STATUS[how], True), (how, r)
        for how, words, more in (('BAD_GEOMETRY', 'must be even with a parity', dict(grid=[4, 1, 1, 1], parity=qk.PARITY_EVEN)),
                                 ('BAD_ARGUMENT', 'grid: solutions that go to a file', dict(grid=[2, 1, 1, 1], sink=qk.SINK_FILE, sink_file=qk.File(path='/tmp/x')))):
            r = c.submit(**more, expect='rejected')
            assert (r.status, words in r.text) == (STATUS[how], True), (how, r)
        a, whole = open_parts(c, (2, 1, 1, 1)), c.submit(1)
        for who, how, words, more in ((other, 'NOT_FOUND', 'no request of this number', dict(owner_request=99)),
                                      (other, 'NOT_FOUND', 'no request of this number', dict(owner_request=whole.request)),
                                      (other, 'NOT_FOUND', 'no request of this number', dict(owner=os.urandom(16))),
                                      (other, 'NOT_FOUND', 'no request of this number', dict(owner=b'')),
                                      (other, 'DENIED', 'token', dict(token=os.urandom(16))),
                                      (other, 'DENIED', 'token', dict(token=a.join[:15])),
                                      (other, 'DENIED', 'token', dict(token=b'')),
                                      (stranger, 'DENIED', "another user's", {}),
                                      (other, 'BAD_ARGUMENT', 'part = 2: the grid has 0 .. 1', dict(part=2)),
                                      (other, 'BAD_ARGUMENT', 'request = 0', dict(request=0))):
            r = join(who, c, a, more.pop('part', 0), expect='rejected', **more)
            assert (r.status, words in r.text) == (STATUS[how], True), (how, more, r)
        h = join(other, c, a, 0)
        assert join(other, c, a, 0, request=h.request).repeated_submit
        r = join(other, c, a, 1, request=h.request, expect='rejected')
        assert 'with other parameters' in r.text, r
        # what is the owner's
        other.send(cancel=qk.Cancel(request=h.request))
        assert 'its owner cancels' in other.error('BAD_ARGUMENT', fatal=False).text
        other.send(attach=qk.Attach(request=h.request))
        assert 'JOIN it again' in other.error('BAD_ARGUMENT', fatal=False).text
        # an owner without a part sends nothing
        c.data.send(frame(UPLOAD, a.request, 0, b'x' * 16, a.field_bytes, 0))
        assert 'over the credit of 0' in c.error('BAD_PROTOCOL').text
        assert 'the request that was joined has ended' in other.error('CANCELLED', fatal=False).text
        settled(d)


@tap.test
def a_part_goes_to_who_has_joined_it_last(case):
    grid = (1, 2, 1, 2)
    b = sources(3)
    with case.daemon() as d, Client(d) as owner, Client(d) as rest, Client(d) as first, Client(d) as second:
        a = owner.submit(3, grid=grid, part=0)
        feed(owner, a, [cut(x, grid, 0) for x in b])
        for p in 1, 2:
            feed(rest, join(rest, owner, a, p), [cut(x, grid, p) for x in b])
        mine = [cut(x, grid, 3) for x in b]
        h = join(first, owner, a, 3)
        data = mine[0].tobytes()
        first.upload(h, [mine[0]])
        first.data.send(frame(UPLOAD, h.request, 1, data[:1000], len(data), 0))
        assert first.expect('result').rhs == 0
        d.status_when(lambda s: s.counters.bytes_in >= (3 * 3 + 1) * len(data) + 1000)
        h2 = join(second, owner, a, 3)
        while h2 is None:
            h2 = join(second, owner, a, 3)
        assert h2.upload_next == len(data)  # the begin of the right-hand side that is not complete
        rs = first.results(3)  # also the one that it could have fetched
        assert [r.status for r in rs] == [STATUS['EXPIRED']] * 3 and all('another client has joined' in r.text and r.bytes == 0 for r in rs), rs
        assert 'another client has joined' in first.error('EXPIRED', fatal=False).text
        first.data.send(frame(UPLOAD, h.request, 1, data[1000:], len(data), 1000, checksum(data)))  # ignored: it is over
        first.ping()
        feed(second, h2, mine)
        got = {r.rhs: second.fetch(r) for r in second.results(3)}
        for i in range(3):
            assert np.array_equal(got[i], 2 * mine[i].ravel()), i
        # who has it gives it up, and another has the solutions
        second.send(release=qk.Release(request=h2.request))
        h3 = join(first, owner, a, 3)
        assert h3.upload_next == 3 * len(data)
        assert all(np.array_equal(first.fetch(r), 2 * mine[r.rhs].ravel()) for r in first.results(3))
        owner.ack(a.request)
        first.send(goodbye=qk.Goodbye())  # which ends nothing
        assert len(rest.results(6)) == 6
        for k in 1, 2:
            rest.ack(k)
        settled(d)


@tap.test
def a_part_stays_with_who_has_it_where_another_one_is_refused(case):
    links, piece = np.zeros((32, 16, 16, 16, 4, 3, 3), complex), bytes(1 << 20)
    with case.daemon() as d, Client(d) as owner, Client(d) as first, Client(d) as second:
        a = open_parts(owner, (1, 1, 1, 2), links)
        has, wants, busy = first, second, 0
        h = join(has, owner, a, 0)
        for _ in range(200):
            for k in range(h.upload_until >> 20):
                has.data.send(frame(UPLOAD, h.request, 0, piece, h.field_bytes, k << 20, 0))
            while True:  # until what was sent is in memory
                wants.request += 1
                wants.send(join=qk.Join(request=wants.request, owner=owner.client_id, owner_request=a.request, token=a.join, part=0))
                name, body = wants.receive()
                if name == 'accepted':
                    break
                assert (name, body.status) == ('rejected', STATUS['BUSY']) and 'part 0: what another client has sent' in body.text, body
                busy += 1
                has.ping()
                assert not any(n in ('error', 'result') for n, _ in has.later), has.later
            assert has.expect('result').status == STATUS['EXPIRED']
            has.error('EXPIRED', fatal=False)
            has, wants, h = wants, has, body
            if busy > 4:
                break
        assert busy > 0
        owner.send(release=qk.Release(request=a.request))
        settled(d)


@tap.test
def a_client_that_breaks_its_part_leaves_the_others_alone(case):
    grid = (1, 1, 2, 2)
    b = sources(2)
    with case.daemon() as d, Client(d) as owner, Client(d) as rest, Client(d) as bad:
        a = owner.submit(2, grid=grid)
        for p in range(3):
            feed(rest, join(rest, owner, a, p), [cut(x, grid, p) for x in b])
        h = join(bad, owner, a, 3)
        data = cut(b[0], grid, 3).tobytes()
        bad.data.send(frame(UPLOAD, h.request, 0, data, len(data), 0, checksum(data) ^ 1))
        bad.error('BAD_CHECKSUM')
        with Client(d) as good:
            h = join(good, owner, a, 3)
            assert h.upload_next == 0
            feed(good, h, [cut(x, grid, 3) for x in b])
            assert all(np.array_equal(good.fetch(r), 2 * cut(b[r.rhs], grid, 3).ravel()) for r in good.results(2))
        assert len(owner.results(2)) == 2 and len(rest.results(6)) == 6
        rest.send(goodbye=qk.Goodbye())
        owner.send(goodbye=qk.Goodbye())
        settled(d)


@tap.test
def parts_go_by_descriptor(case):
    grid = (2, 2, 1, 1)
    b = sources(3)
    with case.daemon() as d, Client(d) as owner, Client(d) as c:
        a = owner.submit(3, grid=grid, part=0)
        with Local(owner) as mine, Local(c) as local:
            for i in range(3):
                mine.put(a.request, i, cut(b[i], grid, 0).tobytes())
            for p in 1, 2, 3:
                h = join(c, owner, a, p)
                half = cut(b[0], grid, p).tobytes()
                c.data.send(frame(UPLOAD, h.request, 0, half[:100], len(half), 0))  # does not count any more
                for i in range(3):
                    local.put(h.request, i, cut(b[i], grid, p).tobytes())
            rs = c.results(9)
            for r in rs:
                assert local.fetch(r) is None
                assert np.array_equal(c.fetch(r), 2 * cut(b[r.rhs], grid, r.request).ravel())
            for r in owner.results(3):
                assert mine.fetch(r) is None
                assert np.array_equal(owner.fetch(r), 2 * cut(b[r.rhs], grid, 0).ravel())
        owner.send(release=qk.Release(request=a.request))
        settled(d)


@tap.test
def bad_parts_of_links_end_the_field_for_all(case):
    grid = (2, 1, 1, 2)
    with case.daemon() as d, Client(d) as owner, Client(d) as c, Client(d) as neighbour:
        neighbour.upload(neighbour.submit(1), [field()])
        for at, value in (((7, 2, 1, 5), 'swap'), ((2, 0, 0, 1), np.nan), (None, 'parts')):
            links = LINKS.copy()
            if value == 'swap':
                links[at][0] *= 1.01
            elif at:
                links[at] = value
            a = open_parts(owner, grid, links, digest=digest(LINKS))
            parts = [cut(links, grid, p) for p in range(4)]
            if not at:
                parts[1], parts[2] = parts[2], parts[1]  # SU(3) still
            for p in range(4):
                feed(c, join(c, owner, a, p), [parts[p]])
            r = owner.expect('result')
            if at:
                t, z, y, x = at
                words = 'link U_x at x y z t = %d %d %d %d (part %d) is not SU(3)' % (x, y, z, t, x // 4 + 2 * (t // 6))
                assert r.status == STATUS['NOT_UNITARY'] and words in r.text, r
            else:
                assert r.status == STATUS['BAD_CHECKSUM'] and 'FIELD_OPEN says %016x' % digest(LINKS) in r.text, r
            for _ in range(4):
                q = c.expect('result')
                assert (q.status, q.text) == (r.status, r.text), q
            owner.ack(a.request)
            for k in range(c.request - 3, c.request + 1):
                c.ack(k)
        assert neighbour.expect('result').status == 0
        neighbour.ack(1)
        settled(d)


@tap.test
def the_end_of_the_owner_is_that_of_all(case):
    grid = (2, 1, 1, 2)
    with case.daemon() as d, Client(d) as c:
        for how in 'goodbye', 'release':
            with Client(d) as owner:
                a, s = open_parts(owner, grid, part=0), owner.submit(2, grid=grid)
                feed(c, join(c, owner, a, 1), [cut(LINKS, grid, 1)])
                h = join(c, owner, s, 2)
                c.data.send(frame(UPLOAD, h.request, 0, b'x' * 1000, h.field_bytes, 0))
                d.status_when(lambda x: x.memory_used > 0)
                for request in (a.request, s.request) if how == 'release' else ():
                    owner.send(release=qk.Release(request=request))
                if how == 'goodbye':
                    owner.send(goodbye=qk.Goodbye())
                    owner.control.poll(100)
            left = {c.request - 1: 1, c.request: 2}
            errors = set()
            while len(errors) < 2:
                name, body = c.receive()
                if name == 'result':
                    assert body.status == STATUS['CANCELLED'], body
                    left[body.request] -= 1
                elif name == 'error':
                    assert (body.status, body.fatal) == (STATUS['CANCELLED'], False), body
                    errors.add(body.request)
            assert set(left.values()) == {0} and errors == set(left), (left, errors)
            settled(d)


@tap.test
def parts_outlive_the_front(case):
    grid = (2, 1, 2, 1)
    b = sources(4)
    with State(case) as state, state.fronts() as front:
        with front() as d, Client(d) as owner, Client(d) as c:
            a = owner.submit(4, grid=grid, part=0)
            feed(owner, a, [cut(x, grid, 0) for x in b[:2]])
            h = [join(c, owner, a, p) for p in (1, 2, 3)]
            for p in 1, 2:
                feed(c, h[p - 1], [cut(x, grid, p) for x in b])
            feed(c, h[2], [cut(b[0], grid, 3)])
            data = cut(b[1], grid, 3).tobytes()
            c.data.send(frame(UPLOAD, h[2].request, 1, data[:5000], len(data), 0))
            f = open_parts(owner, grid)
            fields = [join(c, owner, f, p) for p in range(4)]
            feed(c, fields[1], [cut(LINKS, grid, 1)])
            links = cut(LINKS, grid, 2).tobytes()
            c.data.send(frame(UPLOAD, fields[2].request, 0, links[:7000], len(links), 0))
            first = owner.expect('result')
            got = [c.expect('result') for _ in range(3)]
            assert first.rhs == 0 and {r.rhs for r in got} == {0}
            c.ack(h[0].request, 0)
            d.status_when(lambda s: s.counters.bytes_in >= 12 * len(data) - len(data) + 5000 + len(links) + 7000)
            owner.ping()
            c.ping()
            kill(d)
        with front() as d, Client(d, owner.client_id) as owner2, Client(d, c.client_id) as c2:
            assert owner2.welcome.resumed and c2.welcome.resumed
            owner2.request, c2.request = owner.request, c.request
            owner2.submit(4, grid=grid, part=0, request=a.request, expect=None)
            again = answer(owner2)
            assert again.repeated_submit and again.join == a.join and again.upload_next == 2 * len(data), again
            assert owner2.expect('result').rhs == 0
            owner2.upload(again, [cut(x, grid, 0) for x in b], begin=again.upload_next)
            g = [join(c2, owner, a, p, request=h[p - 1].request) for p in (1, 2, 3)]
            assert [x.upload_next for x in g] == [4 * len(data), 4 * len(data), len(data) + 5000], g
            assert all(x.repeated_submit for x in g)
            c2.data.send(frame(UPLOAD, g[2].request, 1, data[5000:], len(data), 5000, checksum(data)))  # at the byte where it was
            c2.upload(g[2], [cut(x, grid, 3) for x in b], begin=2 * len(data))
            whole = {0: {}, 1: {}, 2: {}, 3: {}}
            for client, n, part in (owner2, 3, lambda r: 0), (c2, 11, lambda r: 1 + [x.request for x in g].index(r.request)):
                for r in ends(client, n):
                    assert r.status == 0, r
                    assert np.array_equal(client.fetch(r), 2 * cut(b[r.rhs], grid, part(r)).ravel()), r
                    whole[r.rhs][part(r)] = True
            assert all(set(w) >= {2, 3} for w in whole.values()), whole
            again = open_parts(owner2, grid, request=f.request)
            assert again.repeated_submit and again.join == f.join, again
            g2 = [join(c2, owner, f, p, request=fields[p].request) for p in range(4)]
            assert [x.upload_next for x in g2] == [0, len(links), 7000, 0], g2
            feed(c2, g2[0], [cut(LINKS, grid, 0)])
            feed(c2, g2[3], [cut(LINKS, grid, 3)])
            c2.data.send(frame(UPLOAD, g2[2].request, 0, links[7000:], len(links), 7000, checksum(links)))
            assert owner2.expect('result').digest == digest(LINKS)
            assert [c2.expect('result').digest for _ in range(4)] == [digest(LINKS)] * 4
            for x in g + g2:
                c2.ack(x.request)
            c2.ping()
            owner2.send(release=qk.Release(request=a.request))
            owner2.send(release=qk.Release(request=f.request))
            settled(d)
            d.status_when(lambda s: s.counters.requests == 0)
            assert d.terminate() == 0
        assert state.rows('job') == state.rows('rhs') == 0


@tap.test
def what_the_owner_has_acknowledged_waits_for_the_others(case):
    grid = (1, 1, 1, 2)
    b = sources(1)
    with State(case) as state:
        with state.daemon() as d, Client(d) as owner, Client(d) as c:
            a = owner.submit(1, grid=grid, part=0)
            h = join(c, owner, a, 1)
            feed(owner, a, [cut(b[0], grid, 0)])
            feed(c, h, [cut(b[0], grid, 1)])
            r = owner.expect('result')
            assert np.array_equal(owner.fetch(r), 2 * cut(b[0], grid, 0).ravel())
            c.expect('result')
            owner.ack(a.request)
            owner.ping()
            kill(d)
        with state.daemon() as d, Client(d, c.client_id) as c2:
            assert join(c2, owner, a, 1, request=h.request).repeated_submit
            r = c2.expect('result')
            assert np.array_equal(c2.fetch(r), 2 * cut(b[0], grid, 1).ravel())
            c2.ack(h.request)
            d.status_when(lambda s: s.counters.requests == 0)
            settled(d)


@tap.test
def parts_outlive_the_machine_by_the_spool(case):
    grid = (2, 2, 1, 1)
    b = sources(2)
    with State(case) as state:
        with state.daemon(env={'FAKE_GO': '/dev/null'}) as d, Client(d) as owner, Client(d) as c:
            f = open_parts(owner, grid)
            for p in range(4):
                feed(c, join(c, owner, f, p), [cut(LINKS, grid, p)])
            assert owner.expect('result').digest == digest(LINKS)
            a = owner.submit(2, grid=grid, part=0)
            h = [join(c, owner, a, p) for p in (1, 2, 3)]
            feed(owner, a, [cut(x, grid, 0) for x in b])
            for p in 1, 2, 3:
                feed(c, h[p - 1], [cut(x, grid, p) for x in (b if p < 3 else b[:1])])
            assert owner.expect('result').rhs == 0
            d.log('rhs 0 is on the disk', 2)
            owner.ping()
            c.ping()
            kill(d)
        state.end_the_machine()
        with state.daemon() as d, Client(d, owner.client_id) as owner2, Client(d, c.client_id) as c2:
            owner2.request, c2.request = owner.request, c.request
            owner2.submit(2, grid=grid, part=0, request=a.request, expect=None)
            again = answer(owner2)
            n = again.field_bytes
            assert again.upload_next == n, again  # the second one is lost with the memory
            g = [join(c2, owner, a, p, request=h[p - 1].request) for p in (1, 2, 3)]
            assert [x.upload_next for x in g] == [n] * 3, g
            owner2.upload(again, [cut(x, grid, 0) for x in b], begin=n)
            for p in 1, 2, 3:
                c2.upload(g[p - 1], [cut(x, grid, p) for x in b], begin=n)
            for r in ends(owner2, 2):
                assert (r.status, r.attempt) == (0, 1 - r.rhs), r
                assert np.array_equal(owner2.fetch(r), 2 * cut(b[r.rhs], grid, 0).ravel())
            for r in ends(c2, 6):
                p = 1 + [x.request for x in g].index(r.request)
                assert (r.status, r.attempt) == (0, 1 - r.rhs), r
                assert np.array_equal(c2.fetch(r), 2 * cut(b[r.rhs], grid, p).ravel())
            with Client(d) as other:
                a = open_parts(other, grid, digest=digest(LINKS))
                assert a.upload_until == 0 and other.expect('result').status == 0


@tap.test
def links_that_were_here_stay_so(case):
    grid = (2, 1, 1, 1)
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            a = open_parts(c, grid)
            for p in range(2):
                feed(c, join(c, c, a, p), [cut(LINKS, grid, p)])
            assert {c.expect('result').digest for _ in range(3)} == {digest(LINKS)}
            b = open_parts(c, grid, digest=digest(LINKS))
            assert not b.HasField('join') and c.expect('result').status == 0
            kill(d)
        with state.daemon() as d, Client(d, c.client_id) as c2:
            c2.send(attach=qk.Attach(request=b.request))
            r = c2.expect('attached').accepted
            assert (r.upload_until, r.HasField('join')) == (0, False)
            assert c2.expect('result').digest == digest(LINKS)
            for k in range(1, b.request + 1):
                c2.send(release=qk.Release(request=k))
            settled(d)
            assert not any('set aside' in line for line in d.lines)


@tap.test
def an_engine_that_is_lost_solves_them_again(case):
    grid = (1, 1, 1, 4)
    with case.daemon() as d, Client(d) as owner, Client(d) as c:
        b = sources(2)
        a = owner.submit(2, grid=grid, max_iter=fake.HOLD_ONCE)  # by the first engine
        h = [join(c, owner, a, p) for p in range(4)]
        for p in range(4):
            feed(c, h[p], [cut(x, grid, p) for x in b])
        d.status_when(lambda s: s.counters.running == 2)
        os.kill(d.status().engine.pid, 9)
        for r in c.results(8):
            assert r.status == 0 and np.array_equal(c.fetch(r), 2 * cut(b[r.rhs], grid, r.request - 1).ravel()), r


if __name__ == '__main__':
    tap.run(Setups(sys.argv[1], None))
