#!/usr/bin/env python3
"""Links from memory in the real engine, judged by the numpy oracle: test_fields.py QUARKD QUARK_ENGINE QUARK_GAUGE [RANKS]"""
import os
import sys

import tap

try:
    import numpy as np
    import ref_dirac as ref
    from daemon_case import CSW, DIMS, MASS, DaemonCase
    from field_links import blocks_of, digest, noisy, noisy_term, open_field, packed, send, send_term, term_digest, widened
    from front_case import State, kill
    from front_driver import STATUS, Client, qk
    from front_parts import cut, feed, join, pasted
    from setups_case import drop, load, refused, setups, wait_for
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


class Fields(DaemonCase):
    def __init__(self, *programs):
        super().__init__(*programs)
        self.wire = np.ascontiguousarray(np.moveaxis(self.links, 0, 4))  # of the gauge file
        self.other = noisy(DIMS, 11)

    def lasting_engine(self, _):
        return self.engine

    def check(self, client, setup, links, csw=CSW, mass=MASS, boundary=(1, 1, 1, -1)):
        """A right-hand side for the setup is solved with these links."""
        op = ref.WilsonClover(np.moveaxis(links, 4, 0), mass, csw, boundary)
        b = self.noise(3)
        (r, x), = client.solve([b], setup=setup, tol=1e-10)
        assert r.status == 0, r
        x, b = x.reshape(self.shape), b.reshape(self.shape)
        off = np.linalg.norm(b - op.apply(x)) / np.linalg.norm(b)
        assert off < 1.01e-10, off


def off(op, x, b):
    return np.linalg.norm(b - op.apply(x)) / np.linalg.norm(b)


KAPPA = 1 / (2 * (4 + MASS))


def foreign(client, name, term, gauge, **more):
    """A setup of this clover term, loaded by its request."""
    r = send_term(client, term)
    assert r.status == 0, r
    given = {'clover': 'field:%d' % r.request, **more}
    client.send(load=qk.Load(name=name, gauge=gauge, action='foreign-clover',
                             parameter=[qk.Setting(key=k, value=str(v)) for k, v in given.items()]))
    s = client.expect('setup').setup
    assert ('clover', 'digest:%016x' % r.digest) in [(p.key, p.value) for p in s.parameter], s
    return s


@tap.test
def a_clover_term_of_the_links_makes_the_operator_that_they_make(case):
    """Twelve digits of the solution in both normalisations, by Krylov solver and multigrid."""
    term = packed(case.op.clover + (4 + MASS) * np.eye(6))
    with case.daemon('--mg-vectors', '8', '--mg-setup-iterations', '20') as d, Client(d) as c:
        here = 'digest:%016x' % digest(case.wire)
        foreign(c, 'theirs', term, here, kappa=repr(KAPPA))
        s = wait_for(d, 'theirs', qk.STATE_READY)
        assert s.solver == d.status().setup.solver and abs(s.kappa - KAPPA) < 1e-16, s
        b = case.noise(3)
        for normalisation in 0, 1:
            (_, x), = c.solve([b], tol=1e-13, normalisation=normalisation)
            (r, y), = c.solve([b], tol=1e-13, normalisation=normalisation, setup='theirs')
            assert r.status == 0 and np.linalg.norm(y - x) < 1e-12 * np.linalg.norm(x), (normalisation, np.linalg.norm(y - x))


@tap.test
def any_hermitian_term_is_solved_and_applied_as_the_oracle_says(case):
    """With anisotropic hops; parts of the operator, the adjoint, a system of one parity, f32, and what is refused."""
    term, hop = noisy_term(DIMS, 4, 0.4), (0.36, 0.36, 0.36, 1)
    op = ref.ACTIONS['foreign-clover'](np.moveaxis(case.other, 4, 0), (1, 1, 1, -1), clover=blocks_of(term), hop=hop)
    g5 = np.diag(ref.GAMMA5).real[:, None]
    with case.daemon() as d, Client(d) as c:
        links = send(c, case.other)
        foreign(c, 'theirs', term, 'field:%d' % links.request, hop=','.join(map(str, hop)))
        wait_for(d, 'theirs', qk.STATE_READY)
        b = case.noise(5).reshape(case.shape)
        for dagger in False, True:
            (r, x), = c.solve([b.ravel()], tol=1e-11, setup='theirs', dagger=dagger)
            x = x.reshape(case.shape)
            assert r.status == 0 and off(op, g5 * x if dagger else x, g5 * b if dagger else b) < 1.1e-11, r
        for work, want in ((qk.WORK_M, op.apply(b)), (qk.WORK_DIAG, op.local(b)), (qk.WORK_DIAG_INVERSE, op.local_inverse(b)),
                           (qk.WORK_DIAG_INVERSE_HOP, op.local_inverse(op.hops(b)))):
            (r, x), = c.solve([b.ravel()], setup='theirs', work=work)
            assert np.linalg.norm(x - want.ravel()) < 1e-13 * np.linalg.norm(want), work
        even = np.indices(case.shape[:4]).sum(0) % 2 == 0
        half = np.where(even[..., None, None], b, 0)
        want = half - op.local_inverse(op.hops(op.local_inverse(op.hops(half)))) / 4
        (r, x), = c.solve([b[even].ravel()], setup='theirs', work=qk.WORK_SCHUR, parity=qk.PARITY_EVEN)
        assert np.linalg.norm(x - want[even].ravel()) < 1e-13 * np.linalg.norm(want)
        r = c.submit(1, setup='theirs', normalisation=qk.NORMALISATION_KAPPA, expect='rejected')
        assert r.status == STATUS['BAD_ARGUMENT'] and 'this setup has no kappa' in r.text, r
        drop(c, 'theirs')
        wait_for(d, 'theirs', None)
        seen = term.astype(np.float32)
        r = send_term(c, term, True)
        load(c, 'narrow', gauge='field:%d' % links.request, csw=None, action='foreign-clover',
             parameter=[qk.Setting(key='clover', value='digest:%016x' % r.digest)])
        wait_for(d, 'narrow', qk.STATE_READY)
        op = ref.ACTIONS['foreign-clover'](np.moveaxis(case.other, 4, 0), (1, 1, 1, -1), clover=blocks_of(seen.astype(float)))
        (r, x), = c.solve([b.ravel()], tol=1e-11, setup='narrow')
        assert r.status == 0 and off(op, x.reshape(case.shape), b) < 1.1e-11, r
        drop(c, 'narrow')
        wait_for(d, 'narrow', None)
        singular = term.copy()
        singular[1, 2, 3, 0, 36:] = 0
        foreign(c, 'singular', singular, 'field:%d' % links.request)
        s = wait_for(d, 'singular', qk.STATE_FAILED)
        assert s.status == STATUS['BAD_ARGUMENT'] and 'at x y z t = 0 3 2 1' in s.text, s


@tap.test
def what_no_clover_term_can_be_is_refused(case):
    with case.daemon() as d, Client(d) as c, Client(d, user='else') as other:
        links, term = send(c, case.other), send_term(c, noisy_term(DIMS, 4))
        small = send_term(c, noisy_term((4, 4, 4, 4), 4))
        mine = 'digest:%016x' % term.digest
        gauge = 'field:%d' % links.request
        for how, words, more in (('BAD_ARGUMENT', 'mass: foreign-clover has no such parameter', dict(mass=0.1)),
                                 ('BAD_ARGUMENT', 'csw: foreign-clover has no such parameter', dict(csw=1.0)),
                                 ('BAD_ARGUMENT', 'must be a number', dict(clover='field:x')), ('NOT_FOUND', 'no field of this number', dict(clover='field:99')),
                                 ('BAD_ARGUMENT', 'the field is of links, not of a clover term', dict(clover=gauge)),
                                 ('BAD_ARGUMENT', 'the field is of a clover term, not of links', dict(gauge='field:%d' % term.request)),
                                 ('BAD_ARGUMENT', 'clover = digest:HEX16: 16 hexadecimal', dict(clover='digest:12')),
                                 ('NOT_FOUND', 'no clover term with the digest 0123456789abcdef', dict(clover='digest:0123456789abcdef')),
                                 ('BAD_GEOMETRY', 'the term is of 4x4x4x4, and the links are of 4x4x8x8', dict(clover='field:%d' % small.request)),
                                 ('BAD_ARGUMENT', 'needs gauge = field:REQUEST', dict(gauge=None)), ('BAD_ARGUMENT', 'foreign-clover needs clover', dict(clover=None))):
            clover = more.pop('clover', mine)
            parameter = [qk.Setting(key='clover', value=clover)] if clover else []
            text = refused(c, how, load=qk.Load(name='x', **{'gauge': gauge, 'action': 'foreign-clover', 'parameter': parameter, **more}))
            assert words in text, (words, text)
        theirs = send(other, case.other)
        text = refused(other, 'NOT_FOUND', load=qk.Load(name='x', gauge='field:%d' % theirs.request, action='foreign-clover',
                                                        parameter=[qk.Setting(key='clover', value=mine)]))
        assert 'no clover term with the digest' in text, text


@tap.test
def links_of_the_file_are_known_and_others_make_a_setup(case):
    with case.daemon() as d, Client(d) as c:
        assert digest(case.wire) == d.status().setup.digest  # by another implementation
        assert open_field(c, case.wire, digest=digest(case.wire)).upload_until == 0
        assert c.expect('result').status == 0
        load(c, 'heavy', gauge='field:%d' % c.request, mass=0.3, csw=CSW)
        for single, reals in ((False, 18), (True, 12), (False, 12)):
            seen = widened(case.other, single, reals)
            r = send(c, case.other, single, reals, plaquette=ref.plaquette(np.moveaxis(seen, 4, 0)))
            name = 'mine-%d-%d' % (single, reals)
            load(c, name, gauge='field:%d' % r.request, mass=MASS, csw=CSW)
            s = wait_for(d, name, qk.STATE_READY)
            assert s.digest == r.digest == digest(seen), s
            case.check(c, name, seen)
            drop(c, name)
            wait_for(d, name, None)
        wait_for(d, 'heavy', qk.STATE_READY)
        case.check(c, 'heavy', case.wire, mass=0.3)
        case.check(c, 'main', case.wire)
        assert d.terminate() == 0


@tap.test
def another_plaquette_than_was_said_is_found_at_load(case):
    with case.daemon() as d, Client(d) as c:
        r = send(c, case.other, plaquette=0.5)
        load(c, 'mine', gauge='field:%d' % r.request, mass=MASS, csw=CSW)
        s = wait_for(d, 'mine', qk.STATE_FAILED)
        assert s.status == STATUS['BAD_PLAQUETTE'] and 'states 0.5' in s.text, s
        case.check(c, 'main', case.wire)


@tap.test
def in_parts_it_is_all_the_same_to_the_last_bit(case):
    grid = (2, 1, 2, 2)
    with case.daemon() as d, Client(d) as c, Client(d) as other:
        a = open_field(c, case.other, grid=grid, part=5)
        feed(c, a, [cut(case.other, grid, 5)])
        for p in set(range(8)) - {5}:
            feed(other, join(other, c, a, p), [cut(case.other, grid, p)])
        r = c.expect('result')
        assert r.digest == digest(case.other) and all(q.digest == r.digest for q in other.results(7)), r
        load(c, 'mine', gauge='field:%d' % r.request, mass=MASS, csw=CSW)
        wait_for(d, 'mine', qk.STATE_READY)
        b = [case.noise(k).reshape(case.shape) for k in range(3)]
        more = dict(setup='mine', tol=1e-10, single_rhs=False)
        whole = [x for _, x in c.solve([x.ravel() for x in b], **more)]
        a = c.submit(3, grid=grid, part=0, **more)
        have = [(c, a)] + [(other, join(other, c, a, p)) for p in range(1, 8)]
        for p, h in enumerate(have):
            feed(*h, [cut(x, grid, p) for x in b])
        parts = {}
        for client, n in (c, 3), (other, 21):
            for r in client.results(n):
                parts[r.request if client is other else 0, r.rhs] = client.fetch(r)
        shape = cut(b[0], grid, 0).shape
        for i in range(3):
            x = pasted([parts[0 if client is c else h.request, i].reshape(shape) for client, h in have], grid)
            assert x.tobytes() == whole[i].tobytes(), i


@tap.test
def an_engine_or_a_front_that_dies_finds_the_links_again(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            r = send(c, case.other)
            c.ack(r.request)
            load(c, 'mine', gauge='field:%d' % r.request, mass=MASS, csw=CSW)
            wait_for(d, 'mine', qk.STATE_READY)
            term = noisy_term(DIMS, 4)
            op = ref.ACTIONS['foreign-clover'](np.moveaxis(case.other, 4, 0), (1, 1, 1, -1), clover=blocks_of(term))
            foreign(c, 'theirs', term, 'field:%d' % r.request)
            wait_for(d, 'theirs', qk.STATE_READY)
            for name in 'mine', 'theirs':
                os.kill(d.status(setup=name).engine.pid, 9)
                d.log('%s ready' % name, 2)
            case.check(c, 'mine', case.other)
            (_, before), = c.solve([case.noise(3)], setup='theirs', tol=1e-10)
            assert off(op, before.reshape(case.shape), case.noise(3).reshape(case.shape)) < 1.01e-10
            d.log('is on the disk', 2)
            kill(d)
        state.end_the_machine()
        with state.daemon() as d, Client(d, c.client_id) as c:
            wait_for(d, 'mine', qk.STATE_READY)
            c.request = 1000
            case.check(c, 'mine', case.other)
            wait_for(d, 'theirs', qk.STATE_READY)
            (_, x), = c.solve([case.noise(3)], setup='theirs', tol=1e-10)
            assert np.array_equal(x, before)
            assert setups(d)['mine'].digest == r.digest
            assert d.terminate() == 0


if __name__ == '__main__':
    tap.run(Fields(*sys.argv[1:]))
