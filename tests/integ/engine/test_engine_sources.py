"""Smeared, moving and sequential sources of quark-engine, and contractions: test_engine_sources.py QUARK_ENGINE QUARK_GAUGE RANKS

Sources and correlators are made anew here, by numpy; solutions are judged by b - M x.
"""
import sys

import tap
try:
    import contract_ref
    import numpy as np
    import smear_ref
    from engine_case import BAD_ARGUMENT, BAD_PROTOCOL, BASES, CANCELLED, Case, DEVICE_MEMORY, GAUGE, NOT_READY, OK, TOO_LARGE
    from engine_driver import smearing, Vector, pb, qk
except (ImportError, FileNotFoundError) as missing:
    tap.skip_all('python3-zmq, python3-protobuf, protoc, numpy and scipy are needed: %s' % missing)

TOL = 1e-10


def smeared(case, b, spec):
    gauss, _, links = spec.partition('+')
    return smear_ref.smear_source(smear_ref.smear_links(case.links, links) if links else case.links, b, gauss)


def wave(shape, p):
    """exp(i 2 pi p.x / L) as [t][z][y][x][1][1]."""
    _, z, y, x = np.indices(shape[:4])
    lz, ly, lx = shape[1:4]
    return np.exp(2j * np.pi * (p[0] * x / lx + p[1] * y / ly + p[2] * z / lz))[..., None, None]


def spin(matrix, b):
    return np.einsum('st,...tc->...sc', matrix, b)


def bare(case, kind, column):
    """A generated source that is not noise."""
    b = np.zeros(case.shape, complex)
    c = qk.Column(**column)
    if kind == qk.SOURCE_POINT:
        b[c.t, c.z, c.y, c.x, c.spin, c.colour] = 1
    else:
        b[c.t, ..., c.spin, c.colour] = 1
    return b * wave(case.shape, (c.px, c.py, c.pz))


def check(case, end, x, b, tol=TOL):
    assert end.status == OK and end.written, end
    assert abs(end.norm_b / np.linalg.norm(b) - 1) < 1e-12, (end.norm_b, np.linalg.norm(b))
    assert case.residual(x, b) < 1.1 * tol + 1e-14, (case.residual(x, b), end)


# ---- sources ----------------------------------------------------------------------------------------


@tap.test
def sources_of_one_turn_are_smeared_each_as_it_asks(case):
    """Eleven fills at once, some with the same smearing, one without."""
    point, wall, upload = qk.SOURCE_POINT, qk.SOURCE_WALL, qk.SOURCE_UPLOAD
    wanted = [(point, dict(x=1, y=3, z=6, t=5, spin=3, colour=2), 'gauss:0.25,7'),
              (point, dict(x=3, y=0, z=7, t=0, spin=0, colour=0), 'gauss:0.25,7+ape:0.5,2'),
              (wall, dict(t=2, spin=1, colour=1, px=1, py=-1, pz=3), 'gauss:0.25,7+ape:0.5,2'),
              (wall, dict(t=7, spin=2, colour=0), 'gauss:0.25,7+stout:0.1,2,4d'),
              (upload, case.random(1), 'gauss:0.25,7'),
              (upload, case.random(2), 'gauss:1.5,4+hyp:0.75,0.6,0.3,1'),
              (upload, case.random(3), None),
              (upload, case.random(4), 'gauss:0.25,0'),
              (wall, dict(t=0, spin=0, colour=2, pz=1), None),
              (point, dict(x=0, spin=1, colour=0), 'gauss:0.25,7'),
              (upload, case.random(5), 'gauss:0.25,7')]
    sources = [b if kind == upload else bare(case, kind, b) for kind, b, _ in wanted]
    vectors_in = [Vector(case.shape, data=b) for b in sources]
    vectors_out = [Vector(case.shape) for _ in wanted]
    try:
        with case.loaded(slots=len(wanted)) as e:
            serials = []
            for k, (kind, column, spec) in enumerate(wanted):
                more = dict(smear=smearing(spec)) if spec else {}
                if kind == upload:
                    more.update(shm_in=vectors_in[k].name)
                else:
                    more.update(column=qk.Column(**column))
                serials.append(e.fill(k, TOL, source=kind, shm_out=vectors_out[k].name, **more))
            ends = e.done(len(wanted))
        for k, (_, _, spec) in enumerate(wanted):
            b = smeared(case, sources[k], spec) if spec else sources[k]
            check(case, ends[serials[k]], vectors_out[k].read(), b)
    finally:
        for v in vectors_in + vectors_out:
            v.__exit__()


@tap.test
def smearing_does_not_depend_on_what_is_beside_it(case):
    """The same bits alone, and in a group with a source of NaN and one that cannot be made."""
    how = dict(smear=smearing('gauss:0.3,5+ape:0.4,1'))
    b = case.random(6)
    with case.loaded(slots=4) as e, Vector(case.shape, data=b) as good, Vector(case.shape, data=b * np.nan) as nan, \
            Vector(case.shape) as x:
        alone, _ = e.solve(b, entry=1, **how)
        serials = [e.fill(0, shm_in=nan.name, **how), e.fill(2, shm_in='/no-such-object', **how),
                   e.fill(1, shm_in=good.name, shm_out=x.name, **how)]
        ends = e.done(3)
        assert [ends[t].status for t in serials] == [202, BAD_ARGUMENT, OK]
        assert np.array_equal(x.read(), alone)


@tap.test
def smeared_sources_of_other_bases(case):
    with case.loaded() as e:
        for basis, matrix in BASES.items():
            column = dict(t=3, spin=2, colour=1, px=1)
            b = smeared(case, spin(matrix, bare(case, qk.SOURCE_WALL, column)), 'gauss:0.2,3')
            x, end = e.generate(case.shape, qk.SOURCE_WALL, column=column, basis=basis, tol=TOL, smear=smearing('gauss:0.2,3'))
            check(case, end, spin(matrix, x), b)


@tap.test
def noise_moves_and_skips_slices(case):
    """Judged through M x, against noise that does neither."""
    with case.loaded() as e:
        noise = lambda **more: case.op.apply(e.generate(
            case.shape, qk.SOURCE_Z4, column=dict(t=-1, spin=-1, colour=-1, seed=77, **more), tol=1e-12)[0])
        plain = noise()
        assert np.abs(noise(px=3, py=-2, pz=5) - wave(case.shape, (3, -2, 5)) * plain).max() < 1e-8
        x, _ = e.generate(case.shape, qk.SOURCE_Z4, column=dict(t=1, t_every=3, spin=-1, colour=-1, seed=77), tol=1e-12)
        some = np.zeros(case.shape, complex)
        some[1::3] = plain[1::3]
        assert np.abs(case.op.apply(x) - some).max() < 1e-8


@tap.test
def sequential_sources_are_uploads_of_gamma_times_the_solution(case):
    """To the last bit without momentum: an element of gamma is 1, -1, i or -i."""
    held = case.random(7)
    with case.loaded(slots=1) as e, Vector(case.shape, data=held) as kept:
        for n, t in (0, -1), (15, 3), (6, 0), (8, 7):
            b = spin(contract_ref.gamma(n), held)
            if t >= 0:
                b[np.arange(case.shape[0]) != t] = 0
            want, _ = e.solve(b + 0.0, tol=TOL)
            x, end = e.generate(case.shape, qk.SOURCE_SEQUENTIAL, column=dict(t=t, gamma=n), shm_in=kept.name, tol=TOL)
            check(case, end, x, b)
            assert np.array_equal(x, want), n


@tap.test
def sequential_sources_have_momentum_basis_type_and_smearing(case):
    held = case.random(8).astype('c8').astype(complex)
    with case.loaded() as e, Vector(case.shape, qk.DTYPE_F32, held) as single, Vector(case.shape, data=held) as double:
        for n in range(16):
            kept, dtype = ((single, qk.DTYPE_F32), (double, qk.DTYPE_F64))[n % 2]
            column = dict(t=n % 8, gamma=n, px=n % 4, py=-(n % 3), pz=n % 8)
            b = spin(contract_ref.gamma(n), held) * wave(case.shape, (n % 4, -(n % 3), n % 8))
            b[np.arange(case.shape[0]) != n % 8] = 0
            more = dict(shm_in=kept.name, in_dtype=dtype, tol=TOL)
            if n % 4 == 1:
                b = smeared(case, b, 'gauss:0.4,3')
                more.update(smear=smearing('gauss:0.4,3'))
            x, end = e.generate(case.shape, qk.SOURCE_SEQUENTIAL, column=column, **more)
            check(case, end, x, b)
        for basis, matrix in BASES.items():
            b = spin(contract_ref.gamma(9) @ matrix, held)
            x, end = e.generate(case.shape, qk.SOURCE_SEQUENTIAL, column=dict(t=-1, gamma=9), basis=basis, shm_in=double.name,
                                tol=TOL)
            check(case, end, spin(matrix, x), b)


@tap.test
def bad_sources_are_refused_by_name(case):
    wall = dict(t=1)
    with case.loaded() as e, Vector(case.shape) as held, Vector(case.shape, bytes=16) as short:
        sequential = dict(source=qk.SOURCE_SEQUENTIAL, shm_in=held.name)
        bad = [(dict(source=qk.SOURCE_WALL, column=qk.Column(px=4)), 'px = 4'),
               (dict(source=qk.SOURCE_Z2, column=qk.Column(pz=-8)), 'pz = -8'),
               (dict(source=qk.SOURCE_POINT, column=qk.Column(py=1)), 'momentum'),
               (dict(source=qk.SOURCE_WALL, column=qk.Column(t_every=2)), 't_every = 2'),
               (dict(source=qk.SOURCE_Z4, column=qk.Column(t=-1, t_every=2)), 't_every = 2'),
               (dict(source=qk.SOURCE_Z4, column=qk.Column(t=0, t_every=9)), 't_every = 9'),
               (dict(source=qk.SOURCE_SEQUENTIAL, column=qk.Column()), 'shm_in'),
               (dict(source=qk.SOURCE_SEQUENTIAL, column=qk.Column(), shm_in=short.name), '16 bytes'),
               (dict(sequential), 'column'),
               (dict(sequential, column=qk.Column(gamma=16)), 'gamma = 16'),
               (dict(sequential, column=qk.Column(t=8)), 't = 8'),
               (dict(sequential, column=qk.Column(px=-4)), 'px = -4'),
               (dict(sequential, column=qk.Column(), in_dtype=qk.DTYPE_F32), 'bytes')]
        for change, words in [(dict(alpha=float('nan')), 'alpha'), (dict(steps=1001), 'steps = 1001'),
                              (dict(link_steps=101), '101'), (dict(link_param=[1, 2]), 'link_param has 2'),
                              (dict(links=qk.LINK_SMEAR_HYP), 'link_param has 1'), (dict(link_param=[7]), '7')]:
            smear = dict(alpha=0.2, steps=3, links=qk.LINK_SMEAR_APE, link_param=[0.5], link_steps=1)
            bad.append((dict(source=qk.SOURCE_WALL, column=qk.Column(**wall), smear=qk.Smearing(**{**smear, **change})), words))
        for fill, words in bad:
            t = e.fill(1, **fill)
            end = e.done()[t]
            assert end.status in (BAD_ARGUMENT, TOO_LARGE) and words in end.text and not end.written, (fill, end)
        for k in range(20):  # more than there are buffers
            t = e.fill(k % 2, **dict(sequential, column=qk.Column(t=8)))
            assert e.done()[t].status == BAD_ARGUMENT
        t = e.fill(1, **dict(sequential, column=qk.Column(gamma=15)))
        assert e.done()[t].status == OK
        x, end = e.generate(case.shape, qk.SOURCE_WALL, column=wall, smear=smearing('gauss:0.1,1'), tol=TOL)
        check(case, end, x, smeared(case, bare(case, qk.SOURCE_WALL, wall), 'gauss:0.1,1'))


# ---- contractions -------------------------------------------------------------------------------------


class Propagator:
    """Twelve random columns, in memory and in shared memory."""

    def __init__(self, case, seed, dtype=qk.DTYPE_F64):
        self.columns = [case.random(100 * seed + k) for k in range(12)]
        if dtype == qk.DTYPE_F32:
            self.columns = [c.astype('c8').astype(complex) for c in self.columns]
        self.vectors = [Vector(case.shape, dtype, c) for c in self.columns]

    def matrix(self, change=lambda column: column):
        """[t][z][y][x][sink spin][sink colour][source spin][source colour]."""
        s = np.stack([change(c) for c in self.columns], axis=-1)
        return s.reshape(s.shape[:-1] + (4, 3))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for v in self.vectors:
            v.__exit__()


def out_vector(case, channels, momenta):
    """For the correlators of mesons."""
    return Vector((channels, momenta, case.shape[0]))


@tap.test
def mesons_are_those_of_the_columns(case):
    channels = [(qk.CHANNEL_MESON, 15, 15), (qk.CHANNEL_MESON, 1, 9), (qk.CHANNEL_MESON, 6, 0)]
    momenta, origin = [(0, 0, 0), (1, -2, 3), (-3, 0, 7)], (3, 1, 5, 6)
    double, single = qk.DTYPE_F64, qk.DTYPE_F32
    with case.loaded() as e, Propagator(case, 1) as p, Propagator(case, 2, single) as q, out_vector(case, 3, 3) as out:
        for a, b, types, eps in (p, None, dict(dtype_a=double), 1e-12), \
                (p, q, dict(dtype_a=double, dtype_b=single), 1e-12), (q, None, dict(dtype_a=single), 1e-6):
            got, end = e.contract(a.vectors, b.vectors if b else (), channels, out, momentum=sum(momenta, ()), origin=origin,
                                  **types)
            assert end.status == OK and not end.text and end.seconds > 0, end
            x, y = a.matrix(), (b or a).matrix()
            for i, (_, sink, source) in enumerate(channels):
                want = contract_ref.meson(x, y, sink, source, momenta, origin)
                assert np.abs(got[i] - want).max() < eps * np.linalg.norm(x) * np.linalg.norm(y), i


@tap.test
def a_result_holds_channels_of_all_kinds_one_after_the_other(case):
    """Baryons beyond the antiperiodic edge change their sign. Without buffers columns are read in one go."""
    channels = [(qk.CHANNEL_NUCLEON, 0, 0), (qk.CHANNEL_MESON, 5, 15), (qk.CHANNEL_DELTA, 0, 0)]
    momenta, origin, t = [(0, 1, 0), (0, 0, 0)], (0, 2, 1, 5), case.shape[0]
    with case.loaded(staging=0) as e, Propagator(case, 10) as p, Propagator(case, 11) as q, Vector((2 * t * (16 + 1 + 144),)) as out:
        got, end = e.contract(p.vectors, q.vectors, channels, out, momentum=sum(momenta, ()), origin=origin)
        assert end.status == OK, end
        x, y = p.matrix(), q.matrix()
        edge = np.where(np.arange(t) < t - origin[3], 1, -1)[None, :, None]
        nucleon = contract_ref.nucleon(x, y, momenta, origin).reshape(2, t, 16) * edge
        c_gx = (contract_ref.C @ contract_ref.gamma(1))[None]
        delta = contract_ref.baryon([x, x, x], c_gx, c_gx, momenta, origin).reshape(2, t, 16) * edge
        meson = contract_ref.meson(x, y, 5, 15, momenta, origin)
        parts = np.split(got, np.cumsum([nucleon.size, meson.size]))
        parts[2] = parts[2].reshape(2, t, 3, 3, 16)[:, :, 0, 0]
        for part, want in zip(parts, (nucleon, meson, delta)):
            assert np.abs(part.ravel() - want.ravel()).max() < 1e-10 * np.abs(want).max()


@tap.test
def sinks_are_smeared(case):
    spec = 'gauss:0.3,4+ape:0.5,1'
    with case.loaded() as e, Propagator(case, 3) as p, Propagator(case, 4) as q, out_vector(case, 1, 1) as out:
        got, end = e.contract(p.vectors, q.vectors, out=out, sink=smearing(spec))
        assert end.status == OK, end
        a, b = (v.matrix(lambda column: smeared(case, column, spec)) for v in (p, q))
        want = contract_ref.meson(a, b, 15, 15, [(0, 0, 0)], (0, 0, 0, 0))
        assert np.abs(got[0] - want).max() < 1e-12 * np.linalg.norm(a) * np.linalg.norm(b)


@tap.test
def solves_go_on_beside_contractions(case):
    """A slot that is solved while correlators are made has the bits of one that is not, whichever came first."""
    b = case.random(9)
    with case.loaded(solver='gcr') as e, Propagator(case, 5) as p, out_vector(case, 1, 1) as out, \
            Vector(case.shape, data=b) as source, Vector(case.shape) as sink:
        def contract():
            e.serials += 1
            e.send(contract=pb.Contract(serial=e.serials, dtype_a=qk.DTYPE_F64, shm_a=[v.name for v in p.vectors],
                                        shm_out=out.name, contraction=qk.Contraction(
                                            request_a=0, channel=[qk.Channel(kind=qk.CHANNEL_MESON)])))
            return e.serials

        def wait(*serials):
            ends = {}
            while set(ends) != set(serials):
                name, body = e.receive()
                if name in ('fill_done', 'contracted'):
                    ends[body.serial] = body
            return [ends[serial] for serial in serials]

        alone, _ = e.solve(b, tol=1e-12)
        quiet, _ = e.contract(p.vectors, out=out)
        for first in 'contract', 'fill':
            if first == 'contract':
                correlators, solve = contract(), e.fill(0, 1e-12, shm_in=source.name, shm_out=sink.name)
            else:
                solve, correlators = e.fill(0, 1e-12, shm_in=source.name, shm_out=sink.name), contract()
            too_many = contract()
            ends = wait(correlators, solve, too_many)
            assert [end.status for end in ends] == [OK, OK, BAD_PROTOCOL] and 'under way' in ends[2].text, ends
            assert np.array_equal(sink.read(), alone) and np.array_equal(out.read(), quiet)
            with open(out.path, 'r+b') as f:
                f.write(bytes(quiet.size * 16))


@tap.test
def uploads_without_end_leave_contractions_a_way_in(case):
    """There are always more that wait than buffers."""
    with case.endless(slots=2, staging=2) as e, Propagator(case, 8) as p, out_vector(case, 1, 1) as out, \
            Vector(case.shape, data=case.random(9)) as source:
        upload = dict(tol=1e-13, max_iter=300, shm_in=source.name, backlog=100)
        quiet, _ = e.contract(p.vectors, out=out)
        for slot in range(e.facts.inflight):
            e.fill(slot, **upload)
        e.serials += 1
        e.send(contract=pb.Contract(serial=e.serials, dtype_a=qk.DTYPE_F64, shm_a=[v.name for v in p.vectors],
                                    shm_out=out.name, contraction=qk.Contraction(
                                        request_a=0, channel=[qk.Channel(kind=qk.CHANNEL_MESON)])))
        ended = 0
        while ended < 60:
            name, body = e.receive()
            if name == 'contracted':
                assert body.status == OK and np.array_equal(out.read(), quiet)
                return
            if name == 'fill_done':
                ended += 1
                e.fill(body.entry, **upload)
        raise AssertionError('60 right-hand sides came first')


@tap.test
def contractions_end_with_the_front_that_asked_for_them(case):
    with case.start(options=['--grace', '60000']) as e, Propagator(case, 8) as p, out_vector(case, 1, 1) as out:
        e.load(GAUGE, mass=0.2, csw=1)
        e.ready()
        quiet, _ = e.contract(p.vectors, out=out)
        ended = 0
        for nonce in range(1, 6):
            with open(out.path, 'r+b') as f:
                f.write(bytes(quiet.size * 16))
            e.send(contract=pb.Contract(serial=1000 + nonce, dtype_a=qk.DTYPE_F64, shm_a=[v.name for v in p.vectors],
                                        shm_out=out.name, contraction=qk.Contraction(
                                            request_a=0, channel=[qk.Channel(kind=qk.CHANNEL_MESON)])))
            e.send(adopt=pb.Adopt(nonce=nonce))
            heard = [e.receive()]
            while heard[-1][0] != 'hello':
                heard.append(e.receive())
            assert heard[-1][1].nonce == nonce
            e.ready()
            late = any(name == 'contracted' for name, _ in heard)  # ADOPT was too slow
            assert late == out.read().any(), heard
            ended += not late
        assert ended > 0
        again, end = e.contract(p.vectors, out=out)
        assert end.status == OK and np.array_equal(again, quiet)


@tap.test
def device_memory_of_contractions_is_given_back(case):
    """At once where nothing is solved, else before long."""
    with case.endless() as e, Propagator(case, 8) as p, Propagator(case, 8, qk.DTYPE_F32) as q, out_vector(case, 1, 1) as out:
        noise = dict(source=qk.SOURCE_Z2, column=qk.Column(t=-1, spin=-1, colour=-1), tol=1e-13)
        skip = 'fill_progress', 'fill_done'

        def held():
            """Bytes, and how the slot has ended meanwhile, if it has."""
            ended = None
            name, body = e.receive(heartbeats=True)
            while name != 'heartbeat':
                ended = body.status if name == 'fill_done' else ended
                name, body = e.receive(heartbeats=True)
            return body.device_bytes, ended

        def contract_all():
            return [e.contract(p.vectors, out=out, skip=skip)[0],
                    e.contract(q.vectors, out=out, dtype_a=qk.DTYPE_F32, skip=skip)[0],
                    e.contract(p.vectors, p.vectors, out=out, skip=skip)[0], e.contract(p.vectors, out=out, skip=skip)[0]]

        e.fill(0, max_iter=100, **noise)  # work fields of the solver come now
        e.done()
        quiet = contract_all()
        assert all(np.array_equal(quiet[0], x) for x in quiet[2:])
        before, _ = held()
        e.contract(p.vectors, out=out)
        assert held() == (before, None)
        for _ in range(20):  # the slot must not end by itself meanwhile
            serial = e.fill(0, max_iter=10**9, **noise)
            assert all(np.array_equal(x, y) for x, y in zip(contract_all(), quiet))
            now, ended = held()
            for _ in range(60):  # as many steps as it may take, however slow they are
                if ended is not None or now == before:
                    break
                now, ended = held()
            e.send(cancel=pb.CancelFill(entry=0, serial=serial))
            if CANCELLED in (held()[1], held()[1]):  # it ran until then
                break
        else:
            assert False, 'the slot ends by itself'
        assert now == before, (now, before)


@tap.test
def bad_contractions_are_refused_by_name(case):
    with case.start() as e, Vector((1,)) as out:
        _, end = e.contract((), out=out)
        assert end.status == NOT_READY and end.text
    with case.loaded() as e, Propagator(case, 6) as p, out_vector(case, 1, 1) as out, Vector(case.shape, bytes=64) as short:
        v, good = p.vectors, dict(out=out)
        pion = (qk.CHANNEL_MESON, 15, 15)
        quiet, end = e.contract(v, **good)
        bad = [(dict(a=v[:11]), 'shm_a has 11'), (dict(b=v[:1]), 'shm_b has 1'), (dict(a=v[:11] + [short]), '64 bytes'),
               (dict(b=v[:11] + [short]), '64 bytes'), (dict(dtype_a=qk.DTYPE_F32), 'bytes'), (dict(out=short), '64 bytes'),
               (dict(channels=[pion] * 2), '256'), (dict(channels=()), 'channel has 0'), (dict(channels=[pion] * 513), '513'),
               (dict(channels=[(qk.CHANNEL_MESON, 16, 0)]), '16'), (dict(momentum=[0, 1]), 'momentum: 2 numbers'),
               (dict(momentum=[0, 4, 0]), 'py = 4'), (dict(momentum=[0] * 3 * 129), 'limit of 128'),
               (dict(origin=[0, 0, 1]), 'origin: 3 numbers'), (dict(origin=[0, 0, 8, 0]), 'z = 8'), (dict(origin=[0, 0, 0, -1]), 't = -1'),
               (dict(sink=qk.Smearing(alpha=0.1, steps=5000)), '5000')]
        for change, words in bad:
            _, end = e.contract(**{**good, 'a': v, **change})
            assert end.status in (BAD_ARGUMENT, TOO_LARGE) and words in end.text, (change, end)
        assert np.array_equal(e.contract(v, **good)[0], quiet)


@tap.test
def correlators_that_no_double_holds_are_refused(case):
    """Products of propagators that one holds; those of zeros, and zeros between others, are right."""
    shape = case.shape
    with case.loaded() as e, out_vector(case, 1, 1) as out:
        for scale, said in ((1e-170, 'too small for f64'), (1e-155, 'too small for f64'), (1e170, 'is NaN or Inf'), (1e-120, ''), (0, '')):
            vectors = [Vector(shape, data=scale * case.random(60 + i)) for i in range(12)]
            try:
                got, end = e.contract(vectors, out=out)
            finally:
                for v in vectors:
                    v.__exit__()
            assert end.status == (BAD_ARGUMENT if said else OK) and said in end.text, (scale, end)
            assert said or (got.any() == (scale != 0)), scale
        one_site = np.zeros(shape, complex)
        one_site[0, 0, 0, 0, 0, 0] = 1
        with Vector(shape, data=one_site) as one, Vector(shape) as nothing:
            _, end = e.contract([one] + 11 * [nothing], channels=[(qk.CHANNEL_MESON, 0, 15)], out=out)
            assert end.status == OK, end


@tap.test
def memory_stays_where_it_was(case):
    """Once each kind of links has been smeared; then for any number of contractions and smeared sources."""
    specs = 'gauss:0.3,2', 'gauss:0.2,3+ape:0.5,1', 'gauss:0.2,3+stout:0.1,1'
    with case.loaded() as e, Propagator(case, 7) as p, Propagator(case, 8, qk.DTYPE_F32) as q, out_vector(case, 1, 1) as out:
        def work():
            for spec in specs:
                e.contract(p.vectors, out=out, sink=smearing(spec))
                e.contract(q.vectors, out=out, dtype_a=qk.DTYPE_F32, sink=smearing(spec))
                e.generate(case.shape, qk.SOURCE_WALL, column=dict(t=1), smear=smearing(spec), tol=1e-3)
            beat = e.heartbeat()
            return beat.device_bytes, beat.host_bytes
        before = work()
        for _ in range(3):
            assert work() == before


@tap.test
def the_oldest_smeared_links_make_room(case):
    """More kinds of links than are kept, one after the other and again."""
    specs = ['gauss:0.3,2+ape:0.%d,1' % k for k in range(1, 6)]
    with case.loaded() as e:
        for spec in specs + specs[::-1]:
            column = dict(x=1, y=2, z=3, t=4, spin=1)
            x, end = e.generate(case.shape, qk.SOURCE_POINT, column=column, smear=smearing(spec), tol=TOL)
            check(case, end, x, smeared(case, bare(case, qk.SOURCE_POINT, column), spec))
        beat = e.heartbeat()
        assert beat.device_bytes > 0


WARM = dict(source=qk.SOURCE_POINT, column=qk.Column(), tol=TOL)


def first_after_a_solve(case):
    """The first allocation of device memory that is of neither LOAD nor a plain solve, by bisection."""
    def fails(n):
        with case.start(last_env={'QK_FAULTS': 'device-alloc:%d' % n}) as e:
            e.load(GAUGE)
            name = 'load_progress'
            while name == 'load_progress':
                name, _ = e.receive()
            if name == 'load_failed':
                return True
            e.fill(0, **WARM)
            try:
                while name not in ('fill_done', 'fatal'):
                    name, _ = e.receive()
            except ChildProcessError:
                name = 'fatal'
            assert name == 'fill_done' or e.wait() == 70
            return name == 'fatal'
    low, high = 1, 1024
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    return high


@tap.test
def no_device_memory_fails_the_piece_of_work_alone(case):
    """Every allocation of a smeared source and of a contraction fails in its turn, on the last rank alone. Links are made
    again where those that were kept can be given up, so some go unnoticed."""
    column, spec = dict(x=1, t=2), 'gauss:0.2,3+ape:0.5,1'
    b = smeared(case, bare(case, qk.SOURCE_POINT, column), spec)
    first = first_after_a_solve(case)
    with Propagator(case, 9) as p, out_vector(case, 1, 1) as out:
        with case.loaded() as e:
            want, _ = e.contract(p.vectors, out=out, sink=smearing(spec))
        failures = {'fill': 0, 'contract': 0}
        for n in range(first, first + 24, 1 if case.ranks == 1 else 5):
            with case.loaded(last_env={'QK_FAULTS': 'device-alloc:%d' % n}) as e:
                e.fill(0, **WARM)
                e.done()
                x, end = e.generate(case.shape, qk.SOURCE_POINT, column=column, smear=smearing(spec), tol=TOL)
                if end.status == DEVICE_MEMORY:
                    failures['fill'] += 1
                    assert 'smearing' in end.text and not end.written, end
                    x, end = e.generate(case.shape, qk.SOURCE_POINT, column=column, smear=smearing(spec), tol=TOL)
                check(case, end, x, b)
                got, end = e.contract(p.vectors, out=out, sink=smearing(spec))
                if end.status == DEVICE_MEMORY:
                    failures['contract'] += 1
                    assert end.text, end
                    got, end = e.contract(p.vectors, out=out, sink=smearing(spec))
                assert end.status == OK and np.array_equal(got, want), end
        assert failures['fill'] + failures['contract'] > 1, failures
        assert case.ranks > 1 or (failures['fill'] > 1 and failures['contract'] > 1), failures


@tap.test
def a_lost_device_is_fatal(case):
    """On the last rank alone, wherever in a contraction it is; no rank waits for it for ever."""
    with Propagator(case, 12) as p, out_vector(case, 1, 1) as out:
        for n in range(600, 680, 17 if case.ranks == 1 else 40):
            with case.loaded(last_env={'QK_FAULTS': 'device-call:%d' % n}) as e:
                ended = 0
                try:
                    while ended < 1000:
                        ended += e.contract(p.vectors, out=out, sink=smearing('gauss:0.2,3'))[1].status == OK
                except (AssertionError, ChildProcessError):  # a message that it is fatal, or none
                    assert e.wait() == 70
                assert 0 < ended < 1000, (n, ended)


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:4]))
