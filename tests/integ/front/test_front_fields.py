#!/usr/bin/env python3
"""Links from memory: their check, the setups that are made of them, who sees these, and what survives: test_front_fields.py QUARKD"""
import contextlib
import os
import re
import resource
import sys
import tempfile

import tap

try:
    import numpy as np
    from field_links import bytes_of, digest, noisy, noisy_term, open_field, send, send_term, term_digest, widened
    from front_case import State, field, kill
    from front_driver import STATUS, Client, frame, qk
    from front_driver import UPLOAD
    from front_keys import guarded
    from setups_case import FAKE, Setups, check, drop, load, refused, setups, wait_for
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

DIMS = (4, 4, 4, 4)
LINKS, OTHER = noisy(DIMS, 1), noisy(DIMS, 2)


def text_of(result, status):
    assert result.status == STATUS[status], result
    return result.text


def memory(daemon):
    s = daemon.status()
    return s.memory_used, s.counters.kept_bytes


def settled(daemon):
    """Memory is as it was at first."""
    daemon.status_when(lambda s: s.memory_used == 0 and s.counters.kept_bytes == 0)


@tap.test
def links_are_checked_and_known_by_their_digest(case):
    with case.daemon() as d, Client(d) as c:
        assert 1 in c.welcome.feature
        for single, reals in ((False, 18), (True, 18), (False, 12), (True, 12)):
            want = digest(widened(LINKS, single, reals))
            r = send(c, LINKS, single, reals)
            assert (r.status, r.digest, r.bytes, r.true_residual) == (0, want, 0, 0), r
            assert 0 <= r.unitarity < (1e-5 if single else 1e-9)
            again = open_field(c, LINKS, single, reals, digest=want)  # nothing is to be sent
            assert again.upload_until == 0
            r = c.expect('result')
            assert (r.status, r.digest, r.HasField('unitarity')) == (0, want, False), r
            c.ack(c.request)
        before = d.status().counters.bytes_in
        for k in range(20):  # however often
            open_field(c, LINKS, digest=digest(LINKS))
            assert c.expect('result').status == 0
            c.ack(c.request)
        assert d.status().counters.bytes_in == before
        for request in range(1, c.request + 1):
            c.send(release=qk.Release(request=request))
        settled(d)
        assert open_field(c, LINKS, digest=digest(LINKS)).upload_until > 0  # they have gone


@tap.test
def an_open_boundary_is_taken_and_a_torn_one_is_not(case):
    links = LINKS.copy()
    with case.daemon() as d, Client(d) as c:
        links[-1, :, :, :, 3] = 0
        assert send(c, links).status == 0
        links[-1, 0, 0, 0, 3] = np.eye(3)
        assert '63 of the links' in text_of(send(c, links), 'NOT_UNITARY')


@tap.test
def bad_links_are_refused_by_name_and_leave_nothing(case):
    with case.daemon() as d, Client(d) as c, Client(d) as neighbour:
        neighbour.upload(neighbour.submit(1), [field()])
        for change, words in ((lambda u: u.__setitem__((3, 2, 1, 0, 2, 1, 1), u[3, 2, 1, 0, 2, 1, 1] + 1e-6), 'link U_z at x y z t = 0 1 2 3'),
                              (lambda u: u.__setitem__((0, 0, 0, 1, 0, 0, 0), np.nan), 'link U_x at x y z t = 1 0 0 0 is not SU(3): off by inf'),
                              (lambda u: u.__setitem__((1, 1, 1, 1, 3), u[1, 1, 1, 1, 3] * np.exp(0.01j)), 'link U_t at x y z t = 1 1 1 1'),
                              (lambda u: u.__setitem__((2, 0, 0, 0), 0), 'link U_x at x y z t = 0 0 0 2')):
            links = LINKS.copy()
            change(links)
            text = text_of(send(c, links), 'NOT_UNITARY')
            assert words in text, text
            assert 'was refused' in refused(c, 'BAD_ARGUMENT', load=qk.Load(name='x', gauge='field:%d' % c.request, kappa=0.1))
            c.ack(c.request)
        links = LINKS.copy()
        links[0, 0, 0, [0, 1]] = links[0, 0, 0, [1, 0]]  # exchanged sites are SU(3) still
        r = send(c, links, digest=digest(LINKS))
        assert 'FIELD_OPEN says %016x' % digest(LINKS) in text_of(r, 'BAD_CHECKSUM'), r
        c.ack(c.request)
        assert neighbour.expect('result').status == 0
        neighbour.ack(1)
        settled(d)


@tap.test
def what_cannot_be_is_rejected(case):
    with case.daemon('--keep-time', '60', '--max-memory', '4M') as d, Client(d) as c:
        for how, words, more in (('BAD_ARGUMENT', 'request = 0', dict(request=0)),
                                 ('BAD_ARGUMENT', 'reals = 18', dict(kind=qk.FIELD_CLOVER)),
                                 ('BAD_ARGUMENT', 'plaquette = 0.5: a clover term has none', dict(kind=qk.FIELD_CLOVER, reals=72, plaquette=0.5)),
                                 ('BAD_ARGUMENT', 'reals = 18: of a field of vectors', dict(kind=qk.FIELD_VECTORS)),
                                 ('BAD_ARGUMENT', 'reals = 17', dict(reals=17)),
                                 ('BAD_GEOMETRY', 'dims of 3', dict(dims=[4, 4, 4])),
                                 ('BAD_GEOMETRY', 'extent of y is 3', dict(dims=[4, 3, 4, 4])),
                                 ('BAD_GEOMETRY', 'extent of t is 0', dict(dims=[4, 4, 4, 0])),
                                 ('TOO_LARGE', '2147483647 sites', dict(dims=[65536, 65536, 2, 2])),
                                 ('TOO_LARGE', 'max-memory', dict(dims=[16, 16, 16, 16])),
                                 ('BAD_ARGUMENT', 'plaquette = nan', dict(plaquette=float('nan'))),
                                 ('BAD_ARGUMENT', 'over the limit of 60000 (--keep-time)', dict(keep_ms=60001))):
            r = open_field(c, LINKS, **more, expect='rejected')
            assert (r.status, words in r.text) == (STATUS[how], True), (how, words, r)
        settled(d)
        # 64 fields of a user are too many; here memory ends before
        for how, words, gauge in (('NOT_FOUND', 'no field of this number', 'field:99'), ('BAD_ARGUMENT', 'must be a number', 'field:x'),
                                  ('BAD_ARGUMENT', 'must be a number', 'field:'), ('BAD_ARGUMENT', '16 hexadecimal', 'digest:12'),
                                  ('BAD_ARGUMENT', '16 hexadecimal', 'digest:000000000000000G'),
                                  ('NOT_FOUND', 'no links with the digest', 'digest:0123456789abcdef')):
            text = refused(c, how, load=qk.Load(name='x', gauge=gauge, kappa=0.1))
            assert words in text, (gauge, text)
        accepted = open_field(c, LINKS)
        assert 'not complete yet' in refused(c, 'BAD_ARGUMENT', load=qk.Load(name='x', gauge='field:%d' % accepted.request, kappa=0.1))
        r = c.submit(source=qk.SOURCE_SEQUENTIAL, column=[qk.Column(request=accepted.request)], expect='rejected')
        assert 'is a field (FIELD_OPEN), no solution' in r.text, r


@tap.test
def a_clover_term_is_checked_and_known_by_its_digest(case):
    term = noisy_term(DIMS, 5)
    with case.daemon() as d, Client(d) as c, Client(d, user='else') as other:
        for single in False, True:
            seen = term.astype(np.float32).astype(float) if single else term
            r = send_term(c, term, single)
            assert (r.status, r.digest, r.HasField('unitarity'), r.bytes) == (0, term_digest(seen), False, 0), r
            before = d.status().counters.bytes_in
            again = send_term(c, term, single, digest=r.digest, reals=72)  # nothing is sent
            assert (again.status, again.digest) == (0, r.digest) and d.status().counters.bytes_in == before, again
        # it is no links, and nobody else's
        assert open_field(c, LINKS, digest=term_digest(term)).upload_until > 0
        assert send_term(other, term, digest=term_digest(term)).status == 0 and d.status().counters.bytes_in > before
        text = refused(c, 'NOT_FOUND', load=qk.Load(name='x', gauge='digest:%016x' % term_digest(term), kappa=0.1))
        assert 'no links with the digest' in text, text
        for at, value in (((3, 2, 1, 0, 71), np.nan), ((0, 0, 0, 1, 0), np.inf)):
            bad = term.copy()
            bad[at] = value
            bad[3, 3, 3, 3, 3] = -np.inf  # the first one is named
            text = text_of(send_term(c, bad), 'BAD_ARGUMENT')
            assert 'the clover term at x y z t = %d %d %d %d is not finite: number %d of 72; 2 numbers' % (*at[3::-1], at[4]) in text, text
        r = send_term(c, term, digest=7)
        assert 'the clover term has the digest %016x, FIELD_OPEN says 0000000000000007' % term_digest(term) in text_of(r, 'BAD_CHECKSUM'), r
        for request in range(1, c.request + 1):
            c.send(release=qk.Release(request=request))
        for request in range(1, other.request + 1):
            other.send(release=qk.Release(request=request))
        settled(d)


@tap.test
def a_user_has_at_most_64_fields(case):
    small = noisy((2, 2, 2, 2), 3)
    with case.daemon() as d, Client(d) as c:
        for _ in range(64):
            open_field(c, small)
        r = open_field(c, small, expect='rejected')
        assert r.status == STATUS['BUSY'] and 'this user has 64 fields' in r.text, r
        assert open_field(c, LINKS, digest=7).upload_until == 0  # those of the public setup take nothing
        assert c.expect('result').status == 0
        with Client(d, user='else') as other:
            open_field(other, small)
        c.send(release=qk.Release(request=1))
        open_field(c, small)


@tap.test
def a_setup_is_made_of_them_and_private(case):
    with case.daemon() as d, Client(d) as c, Client(d, user='else') as other:
        r = send(c, LINKS)
        s = load(c, 'mine', gauge='field:%d' % r.request, kappa=0.12)
        assert (s.gauge, s.owner, s.is_default) == ('digest:%016x' % r.digest, 'tester', False), s
        wait_for(d, 'mine', qk.STATE_READY)
        check(c, 3, setup='mine')
        r2 = other.submit(setup='mine', expect='rejected')
        assert r2.status == STATUS['NOT_FOUND'] and 'there are main' in r2.text and 'mine' not in r2.text.split('there are')[1], r2
        # the same name, of his own links and for himself
        q = send(other, OTHER)
        load(other, 'mine', gauge='digest:%016x' % q.digest, kappa=0.13, csw=3)
        d.status_when(lambda s: sum(x.name == 'mine' and x.state == qk.STATE_READY for x in s.setups) == 2)
        check(other, 5, setup='mine')
        check(c, 3, setup='mine')
        assert 'cannot be the default' in refused(c, 'BAD_ARGUMENT', make_default=qk.MakeDefault(name='mine'))
        assert 'cannot be the default' in refused(c, 'BAD_ARGUMENT', load=qk.Load(name='m2', gauge='field:1', kappa=0.1, make_default=True))
        # the digest of one is nothing for the other
        assert 'send them' in refused(other, 'NOT_FOUND', load=qk.Load(name='x', gauge='digest:%016x' % r.digest, kappa=0.1))
        # a setup stays when the field is released, and lets it go when it ends
        c.send(release=qk.Release(request=r.request))
        check(c, 3, setup='mine')
        os.kill(c.status(setup='mine').engine.pid, 9)  # and its links are there for the next engine
        d.log('mine ready', 3)
        c.status()
        wait_for(d, 'mine', qk.STATE_READY)
        with Client(d, user='op') as op:  # who operates says whose he means
            assert 'several users have one of this name: tester/mine, else/mine' in refused(op, 'BAD_ARGUMENT', drop=qk.Drop(name='mine'))
            for name in 'nobody/mine', 'tester/', '/mine', 'tester/mine/', 'x' * 500 + '/mine':
                assert 'there is no setup of this name; there are main, tester/mine, else/mine' in refused(op, 'NOT_FOUND', drop=qk.Drop(name=name)), name
            assert op.submit(setup='tester/mine', expect='rejected').status == STATUS['NOT_FOUND']  # a solve needs more than to operate
            assert drop(op, 'else/mine').owner == 'else'
            d.status_when(lambda s: [x.owner for x in s.setups if x.name == 'mine'] == ['tester'])
            assert op.status(setup='mine').setup.name == 'mine'  # there is one only
            assert 'is the default' in refused(op, 'BAD_ARGUMENT', drop=qk.Drop(name='/main'))
        check(c, 3, setup='tester/mine')
        drop(c, 'tester/mine')
        other.send(release=qk.Release(request=q.request))
        wait_for(d, 'mine', None)
        settled(d)
        assert d.terminate() == 0


@tap.test
def without_memory_for_the_check_a_field_ends_and_nothing_else(case):
    links = np.broadcast_to(np.eye(3, dtype=complex), (16, 16, 16, 8, 4, 3, 3))  # 19 MB
    with State(case) as state, state.daemon() as d, Client(d) as c:
        def limit(address_space):
            resource.prlimit(d.process.pid, resource.RLIMIT_AS, (address_space, resource.RLIM_INFINITY))
        accepted = open_field(c, links)
        data = bytes_of(links)
        with open('/proc/%d/statm' % d.process.pid, encoding='utf-8') as f:
            limit(int(f.read().split()[0]) * resource.getpagesize() + (12 << 20))  # what it needs beside the mapping of the field
        c.upload(accepted, [np.frombuffer(data, np.uint8)])
        r = c.expect('result')
        assert (r.status, 'no memory to check' in r.text) == (STATUS['NO_MEMORY'], True), r
        c.ping()
        limit(resource.RLIM_INFINITY)
        assert send(c, links).digest == digest(links)


@tap.test
def lists_of_setups_end_with_a_whole_name(case):
    """What does not fit into a text is left out, not cut within a character."""
    users = ['\u00fc' * 31 + str(i) for i in range(6)]
    with case.daemon('--max-setups', '8') as d, Client(d, user='op') as op, contextlib.ExitStack() as stack:
        for user in users:
            c = stack.enter_context(Client(d, user=user))
            load(c, 'mine', gauge='field:%d' % send(c, LINKS).request, kappa=0.12)
        for how, name, first in ('BAD_ARGUMENT', 'mine', []), ('NOT_FOUND', 'nobody', ['main']):
            *names, last = refused(op, how, status=qk.StatusRequest(setup=name)).split('name: ' if name == 'mine' else 'there are ')[1].split(', ')
            assert names == first + [u + '/mine' for u in users[:3]] and last == '...', (names, last)


@tap.test
def null_vectors_of_a_private_setup_are_found_by_its_owner_also_after_a_restart(case):
    with State(case) as state, tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, 'mg')
        options = '--solver', 'mg', '--mg-checkpoint', path

        def origin(daemon, name):
            return wait_for(daemon, name, qk.STATE_READY).origin
        with state.daemon(*options) as d, Client(d) as c, Client(d, user='else') as other:
            r = send(c, LINKS)
            gauge = 'digest:%016x' % r.digest
            load(c, 'start', gauge=gauge, kappa=0.12)
            wait_for(d, 'start', qk.STATE_READY)
            load(c, 'next', gauge=gauge, kappa=0.13, evolve_from='start')
            there = origin(d, 'next').split(' at ')[1]
            assert re.fullmatch(re.escape(path) + r'-start@[0-9a-f]{8}', there), there
            open(there, 'w', encoding='utf-8').close()
            open(path + '-start', 'w', encoding='utf-8').close()  # of a public one that is gone
            drop(c, 'start')
            wait_for(d, 'start', None)
            d.log('is on the disk')
            kill(d)
        state.end_the_machine()
        with state.daemon('--user-setups', '3', *options) as d, Client(d, c.client_id) as c, Client(d, user='else') as other:
            assert origin(d, 'next').endswith(' at ' + there), origin(d, 'next')
            c.request = 100
            load(c, 'third', gauge=gauge, kappa=0.14, evolve_from='start')  # which is gone but for its file
            assert origin(d, 'third').endswith(' at ' + there), origin(d, 'third')
            q = send(other, OTHER)
            load(other, 'mine', gauge='field:%d' % q.request, kappa=0.13, evolve_from='start')  # the public one's
            assert origin(d, 'mine').endswith(' at %s-start' % path), origin(d, 'mine')
            assert d.terminate() == 0


@tap.test
def links_of_a_public_setup_need_not_be_sent(case):
    with case.daemon() as d, Client(d) as c:
        assert open_field(c, LINKS, digest=7).upload_until == 0  # that of the fake engine
        assert c.expect('result').digest == 7
        load(c, 'second', gauge='field:1', kappa=0.125)
        s = wait_for(d, 'second', qk.STATE_READY)
        assert (s.owner, s.gauge, s.kappa) == ('tester', 'fake', 0.125), s
        assert open_field(c, noisy((4, 4, 4, 8), 1), digest=7).upload_until > 0  # another lattice


@tap.test
def quotas_hold_and_idle_ones_make_room(case):
    with case.daemon('--user-setups', '2', '--max-setups', '3') as d, Client(d) as c:
        r = send(c, LINKS)
        gauge = 'digest:%016x' % r.digest
        for name in 'a', 'b':
            load(c, name, gauge=gauge, kappa=0.12)
            wait_for(d, name, qk.STATE_READY)
        held = c.submit(1, setup='b')
        load(c, 'c', gauge=gauge, kappa=0.12)  # in the place of a
        wait_for(d, 'a', None)
        wait_for(d, 'c', qk.STATE_READY)
        second = c.submit(1, setup='c')
        text = refused(c, 'BUSY', load=qk.Load(name='e', gauge=gauge, kappa=0.12))
        assert '2 setups of this user are loaded, the limit is 2 (--user-setups)' in text, text
        for k in held, second:
            c.send(release=qk.Release(request=k.request))
    with case.daemon('--max-setups', '2') as d, Client(d) as c:
        load(c, 'public', kappa=0.12)
        wait_for(d, 'public', qk.STATE_READY)
        gauge = 'digest:%016x' % send(c, LINKS).digest
        text = refused(c, 'BUSY', load=qk.Load(name='mine', gauge=gauge, kappa=0.12))
        assert 'no private one is idle' in text, text  # what the operator has loaded stays
        with Client(d, user='') as nobody:
            gauge = 'digest:%016x' % send(nobody, LINKS).digest
            assert "needs a user's name" in refused(nobody, 'BAD_ARGUMENT', load=qk.Load(name='mine', gauge=gauge, kappa=0.12))
    with case.daemon('--user-setups', '0') as d, Client(d) as c:
        r = send(c, LINKS)
        assert '--user-setups 0' in refused(c, 'DENIED', load=qk.Load(name='a', gauge='digest:%016x' % r.digest, kappa=0.12))


@tap.test
def whose_role_is_submit_loads_links_of_his_own_alone(case):
    with guarded(case) as (d, keys):
        user, third, reader = keys.add('user'), keys.add('third'), keys.add('reader', 'read')
        with Client(d, curve=user, user='') as c, Client(d, curve=third, user='') as t, Client(d, curve=reader, user='') as w:
            assert open_field(w, LINKS, expect='rejected').status == STATUS['DENIED']
            w.send(join=qk.Join(request=1, owner=b'x' * 16, owner_request=1, token=b'x' * 16, part=0))
            assert w.expect('rejected').status == STATUS['DENIED']
            r = send(c, LINKS)
            assert 'needs the role operate' in refused(c, 'DENIED', load=qk.Load(name='x', gauge=FAKE))
            assert 'needs the role operate' in refused(c, 'DENIED', load=qk.Load(name='x'))
            assert 'needs the role operate' in refused(c, 'DENIED', drop=qk.Drop(name='main'))
            refused(w, 'DENIED', load=qk.Load(name='x', gauge='digest:%016x' % r.digest, kappa=0.1))
            load(c, 'mine', gauge='field:1', kappa=0.12)
            wait_for(d, 'mine', qk.STATE_READY)  # the operator sees it
            assert [s.name for s in t.status().setups] == ['main'] and {s.name for s in c.status().setups} == {'main', 'mine'}
            t.send(status=qk.StatusRequest(setup='mine'))
            assert 'there is no setup' in t.error('NOT_FOUND', fatal=False).text
            assert 'needs the role operate' in refused(t, 'DENIED', drop=qk.Drop(name='mine'))
            check(c, 3, setup='mine')
            drop(c, 'mine')
            wait_for(d, 'mine', None)


@tap.test
def a_half_field_ends_with_its_client_and_a_whole_one_does_not(case):
    with case.daemon('--lease', '1') as d:
        with Client(d) as c:
            accepted = open_field(c, LINKS)
            data = bytes_of(LINKS)
            c.data.send(frame(UPLOAD, accepted.request, 0, data[:1000], len(data), 0))
            d.status_when(lambda s: s.counters.bytes_in >= 1000)
            c.send(goodbye=qk.Goodbye())
        settled(d)
        with Client(d) as c:
            want = send(c, LINKS).digest
            c.send(goodbye=qk.Goodbye())
        with Client(d) as c:
            assert open_field(c, LINKS, digest=want).upload_until == 0
            assert c.expect('result').digest == want
            load(c, 'mine', gauge='digest:%016x' % want, kappa=0.12)
            wait_for(d, 'mine', qk.STATE_READY)


@tap.test
def unused_fields_expire_and_used_ones_do_not(case):
    with case.daemon() as d, Client(d) as c:
        r, q = send(c, LINKS, keep_ms=300), send(c, OTHER, keep_ms=300)
        load(c, 'mine', gauge='digest:%016x' % r.digest, kappa=0.12)
        c.ack(r.request)
        c.ack(q.request)
        wait_for(d, 'mine', qk.STATE_READY)
        d.status_when(lambda s: s.counters.kept == 1)
        check(c, 3, setup='mine')
        drop(c, 'mine')
        settled(d)


@tap.test
def any_byte_may_be_the_last(case):
    small = noisy((2, 2, 2, 2), 3)
    data = bytes_of(small)
    with case.daemon() as d:
        for n in (0, 1, 575, 576, len(data) // 2, len(data) - 1):
            with Client(d) as c:
                accepted = open_field(c, small)
                if n:
                    c.data.send(frame(UPLOAD, accepted.request, 0, data[:n], len(data), 0))
                c.ping()
                c.send(goodbye=qk.Goodbye())
            settled(d)


@tap.test
def fields_and_setups_outlive_the_front(case):
    with State(case) as state, state.fronts() as front:
        with front() as d, Client(d) as c:
            r = send(c, LINKS)
            half = open_field(c, OTHER)
            data = bytes_of(OTHER)
            c.data.send(frame(UPLOAD, half.request, 0, data[:5000], len(data), 0))
            c.ping()
            load(c, 'mine', gauge='field:%d' % r.request, kappa=0.12)
            wait_for(d, 'mine', qk.STATE_READY)
            c.ack(r.request)
            waiting = c.submit(1, setup='mine')
            d.status_when(lambda s: s.counters.bytes_in >= 5000)
            kill(d)
        with front() as d, Client(d, c.client_id) as c2:
            assert c2.welcome.resumed
            s = wait_for(d, 'mine', qk.STATE_READY)
            assert (s.owner, s.gauge) == ('tester', 'digest:%016x' % r.digest), s
            c2.request = c.request
            b = field()
            again = c2.submit(1, setup='mine', request=waiting.request)
            assert again.repeated_submit
            c2.upload(again, [b])
            x = c2.expect('result')
            assert x.status == 0 and np.array_equal(c2.fetch(x), 3 * b), x
            c2.ack(waiting.request)
            more = open_field(c2, OTHER, request=half.request)  # at the byte where it was
            assert more.repeated_submit and more.upload_next == 5000, more
            c2.data.send(frame(UPLOAD, half.request, 0, data[5000:], len(data), 5000, _sum(data)))
            assert c2.expect('result').digest == digest(OTHER)
            assert open_field(c2, LINKS, digest=r.digest).upload_until == 0
            c2.expect('result')
            drop(c2, 'mine')
            wait_for(d, 'mine', None)
            for k in r.request, half.request, c2.request:
                c2.send(release=qk.Release(request=k))
            settled(d)
            assert d.terminate() == 0


def _sum(data):
    from front_driver import checksum
    return checksum(data)


@tap.test
def fields_and_setups_outlive_an_orderly_end(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            r = send(c, LINKS)
            load(c, 'mine', gauge='field:%d' % r.request, kappa=0.12)
            wait_for(d, 'mine', qk.STATE_READY)
            c.send(release=qk.Release(request=r.request))  # the setup holds them
            c.send(goodbye=qk.Goodbye())
            d.status_when(lambda s: s.counters.sessions == 1)  # with the field
            d.terminate()
        for end in 'TERM', 'KILL':
            with state.daemon() as d, Client(d, c.client_id) as c2:
                s = wait_for(d, 'mine', qk.STATE_READY)
                assert s.owner == 'tester', s
                c2.request = 1000 if end == 'TERM' else 2000
                check(c2, 3, setup='mine')
                assert open_field(c2, LINKS, digest=digest(LINKS)).upload_until == 0
                assert c2.expect('result').digest == digest(LINKS)
                c2.ack(c2.request)
                d.terminate() if end == 'TERM' else kill(d)
        with state.daemon() as d, Client(d, c.client_id) as c2:
            wait_for(d, 'mine', qk.STATE_READY)
            drop(c2, 'mine')
            wait_for(d, 'mine', None)


@tap.test
def other_links_than_were_asked_for_are_found(case):
    with case.daemon() as d, Client(d) as c:
        load(c, 'public', gauge=FAKE + ':digest=8', kappa=0.12)
        wait_for(d, 'public', qk.STATE_READY)
        load(c, 'mine', gauge='digest:%016x' % 8, kappa=0.12)
        assert wait_for(d, 'mine', qk.STATE_READY).digest == 8
        drop(c, 'mine')
        wait_for(d, 'mine', None)
    with case.daemon(env={'FAKE_LOAD': 'change'}) as d, Client(d) as c:
        first = d.status().setup.digest
        load(c, 'mine', gauge='digest:%016x' % first, kappa=0.12)
        wait_for(d, 'mine', qk.STATE_READY)
        os.kill(d.status(setup='mine').engine.pid, 9)  # the next one finds another configuration
        s = wait_for(d, 'mine', qk.STATE_FAILED)
        assert s.status == STATUS['BAD_CHECKSUM'] and 'not %016x as was asked for' % first in s.text, s


@tap.test
def fields_outlive_the_machine_by_the_spool(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            r = send(c, LINKS)
            c.ack(r.request)  # it stays in the spool
            load(c, 'mine', gauge='field:%d' % r.request, kappa=0.12)
            wait_for(d, 'mine', qk.STATE_READY)
            d.log('is on the disk')
            kill(d)
        state.end_the_machine()
        with state.daemon() as d, Client(d, c.client_id) as c:
            wait_for(d, 'mine', qk.STATE_READY)
            check_new(c, r)
            kill(d)
        # the file is damaged: the setup goes, and says so
        state.end_the_machine()
        folder = os.path.join(state.dir, 'spool')
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), 'r+b') as f:
                f.seek(5000)
                f.write(b'\xff' * 8)
        with state.daemon() as d, Client(d, c.client_id) as c:
            assert d.log('mine@.* is dropped: its links')
            assert set(setups(d)) == {'main'}
            assert d.terminate() == 0


def check_new(c, r):
    c.request = 1000
    check(c, 3, setup='mine')
    assert open_field(c, LINKS, digest=r.digest).upload_until == 0
    c.expect('result')
    c.ack(c.request)


@tap.test
def whoever_has_the_number_can_attach_to_it(case):
    with case.daemon() as d:
        with Client(d) as c:
            r = send(c, LINKS, keep_ms=10000)
        with Client(d, c.client_id) as c:
            c.send(attach=qk.Attach(request=r.request))
            a = c.expect('attached')
            assert a.HasField('field_open') and not a.HasField('submit') and list(a.field_open.dims) == list(DIMS), a
            assert c.expect('result').digest == r.digest


if __name__ == '__main__':
    tap.run(Setups(sys.argv[1], None))
