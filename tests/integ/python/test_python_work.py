"""Links from memory, parts of the operator, residuals and generated sources in Python, judged by the numpy oracle:
test_python_work.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import mmap
import os
import sys

from cli_case import CSW, DIMS, GAUGE, KAPPA, SHAPE, Case, h5py, np, random_sources, ref, tap
from daemon import Daemon
import smear_ref
import quarkd
from quarkd import gauge, request

MASS = 1 / (2 * KAPPA) - 4
G5 = np.diag(ref.GAMMA5).real[:, None]
MU = 0.3


def raises(kind, call, *words):
    try:
        call()
    except kind as e:
        assert all(word in str(e) for word in words), e
        return e
    raise AssertionError('nothing was raised')


def near(x, y, limit=1e-13):
    return np.linalg.norm(x - y) <= limit * np.linalg.norm(y)


def off(op, x, b):
    return np.linalg.norm(b - op.apply(x)) / np.linalg.norm(b)


def noisy_links(seed):
    """SU(3) links [t, z, y, x, mu, 3, 3] near 1."""
    rng = np.random.default_rng(seed)
    q, r = np.linalg.qr(np.eye(3) + 0.2 * rng.normal(size=SHAPE[:4] + (4, 3, 3, 2)) @ np.array([1, 1j]))
    q = q * (np.einsum('...ii->...i', r) / abs(np.einsum('...ii->...i', r)))[..., None, :]
    return q / np.linalg.det(q)[..., None, None] ** (1 / 3)


@tap.test
def links_from_memory_make_setups_and_are_sent_once(case):
    known, other = np.moveaxis(case.links, 0, 4), noisy_links(3)
    phases = (1, 1, 1j, -1)
    b = random_sources(1)[0]
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            here = q.ready().setup['digest']
            u = q.upload_gauge(known)
            assert not u.sent and u.digest == gauge.digest(known) == here and u.dims == tuple(DIMS)
            v = q.upload_gauge(other, phases, plaquette=ref.plaquette(np.moveaxis(other, 4, 0)))
            again = q.upload_gauge(other)
            assert v.sent and not again.sent and v.digest == again.digest and v.unitarity < 1e-14
            light = q.setup(gauge=v, kappa=KAPPA, csw=CSW)
            assert light.state == 'ready' and light.name == q.setup(gauge=v, kappa=KAPPA, csw=CSW).name
            assert light.name != q.setup(gauge=v, kappa=0.11, csw=CSW).name
            op = ref.WilsonClover(np.moveaxis(other, 4, 0), MASS, CSW, phases)
            assert off(op, q.solve(b, setup=light), b) < 1.01e-10 and off(case.op, q.solve(b), b) < 1.01e-10
            single = q.upload_gauge(other.astype('complex64'))
            assert single.digest != v.digest and single.unitarity < 1e-6
            q.drop(light)
            v.release()
        with quarkd.connect(d.endpoint) as q:  # of this user still, and without the arguments of before
            assert not q.upload_gauge(other.astype('complex64')).sent


class Counted:
    """libquark, whose calls of these names are counted."""

    def __init__(self, lib, *names):
        self._lib, self.calls = lib, dict.fromkeys(names, 0)

    def __getattr__(self, name):
        if name in self.calls:
            self.calls[name] += 1
        return getattr(self._lib, name)


def mapping_at(array):
    """The line of /proc/self/maps that an array is in."""
    address = array.__array_interface__['data'][0]
    with open('/proc/self/maps', encoding='utf-8') as f:
        for line in f:
            begin, end = (int(word, 16) for word in line.split()[0].split('-'))
            if begin <= address < end:
                return line
    return ''


def buffers_mapped():
    with open('/proc/self/maps', encoding='utf-8') as f:
        return sum('memfd:quark-buffer' in line for line in f)


@tap.test
def arrays_in_buffers_are_sent_from_where_they_are(case):
    b, known = random_sources(4), request.lib
    with case.daemon() as d:
        d.wait_listening()
        for local in (True, False):
            counted = request.lib = Counted(known, 'quark_put', 'quark_upload')
            try:
                with quarkd.connect(d.endpoint, local=local) as q:
                    one, many, links = q.empty(), q.empty((5,) + SHAPE), q.empty(SHAPE[:4] + (4, 3, 3))
                    assert one.shape == SHAPE and not one.any() and 'memfd:quark-buffer' in mapping_at(one) and buffers_mapped() == 3
                    many[1:] = b
                    f = q.submit(many[2])
                    futures = q.submit_many(many[1:])
                    many[:] = 0  # the daemon has them
                    assert off(case.op, f.result(), b[1]) < 1.01e-10
                    assert all(off(case.op, g.result(), x) < 1.01e-10 for g, x in zip(futures, b))
                    single = q.empty(SHAPE, 'complex64')
                    single[...] = b[0]
                    assert off(case.op, q.solve(single, tol=1e-6), b[0]) < 1e-5
                    links[...] = noisy_links(5 + local)
                    assert q.upload_gauge(links).sent and counted.calls == {'quark_put': 7, 'quark_upload': 0}, counted.calls
                    many[1:] = b
                    x = q.solve(many[1, ..., ::-1])  # has to be copied
                    assert off(case.op, x, b[0][..., ::-1]) < 1.01e-10 and counted.calls == {'quark_put': 7, 'quark_upload': 1}, counted.calls
                    slices = many[3, 1:]
                    del one, many, links, single
                    assert buffers_mapped() == 1 and np.array_equal(slices, b[2, 1:])
                    del slices
                    assert buffers_mapped() == 0
            finally:
                request.lib = known
            assert mapping_at(x).count('/quarkd-') == local
        with quarkd.connect(d.endpoint) as q:
            raises(ValueError, lambda: q.empty((0, 3)), '(0, 3)')
            raises(quarkd.ProcessError, lambda: q.empty((1 << 58,)), 'bytes')


@tap.test
def pages_of_buffers_that_were_never_written_are_not_made(case):
    """A point source costs its page, by descriptor and by chunks."""
    b = np.zeros(SHAPE, complex)
    b[5, 1, 2, 3, 2, 1] = 1
    with case.daemon() as d:
        d.wait_listening()
        for local in (True, False):
            with quarkd.connect(d.endpoint, local=local) as q:
                point = q.empty()
                point[5, 1, 2, 3, 2, 1] = 1
                assert off(case.op, q.solve(point), b) < 1.01e-10
                path, = {path for path in map('/proc/self/fd/{}'.format, os.listdir('/proc/self/fd'))
                         if os.path.exists(path) and 'memfd:quark-buffer' in os.readlink(path)}
                assert os.stat(path).st_size == point.nbytes and os.stat(path).st_blocks * 512 <= 2 * mmap.PAGESIZE, os.stat(path)
                del point


@tap.test
def columns_are_the_memory_of_the_daemon(case):
    with case.daemon('--slots=12') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            prop = q.propagator('point:0,0,0,0', progress=False)
            column = prop[3].numpy()
            assert '/dev/shm/quarkd-' in mapping_at(column) and ' r--s ' in mapping_at(column)
            assert np.shares_memory(column, prop[3].numpy()) and np.shares_memory(np.asarray(prop[3]), column)
            assert not np.shares_memory(column, prop[4].numpy()) and prop.numpy().flags.writeable


@tap.test
def bad_links_are_named_and_harm_nobody(case):
    links = noisy_links(4)
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            bad = links.copy()
            bad[5, 1, 2, 3, 2] *= 1.01
            e = raises(quarkd.RequestError, lambda: q.upload_gauge(bad), '3 2 1 5')
            assert e.name == 'NOT_UNITARY', e
            bad[5, 1, 2, 3, 2] = np.nan
            raises(quarkd.RequestError, lambda: q.upload_gauge(bad))
            raises(ValueError, lambda: q.upload_gauge(links[:, :, :, :, :3]), '(8, 4, 4, 4, 3, 3, 3)')
            raises(ValueError, lambda: q.upload_gauge(links[:3]), 'even')
            raises(TypeError, lambda: q.upload_gauge(links.real), 'float64')
            raises(ValueError, lambda: q.upload_gauge(links, (1, 1, 1, 2)), 'modulus 1')
            u = q.upload_gauge(links, plaquette=0.5)
            raises(quarkd.Error, lambda: q.setup('wrong', gauge=u, kappa=KAPPA, csw=CSW), 'states 0.5')
            raises(quarkd.Error, lambda: q.setup(gauge='digest:0123456789abcdef', kappa=KAPPA))
            raises(TypeError, lambda: q.setup(gauge=links, kappa=KAPPA), 'ndarray', 'upload_gauge')
            raises(ValueError, lambda: q.setup(gauge='cfg.lime', kappa=KAPPA), 'cfg.lime', 'load')
            raises(TypeError, lambda: q.setup(gauge=u, kappa='0.1'), "kappa '0.1'")
            b = random_sources(1)[0]
            assert off(case.op, q.solve(b), b) < 1.01e-10


class Parts:
    """Parts of the operator by the oracle."""

    def __init__(self, op):
        self.op = op

    def __call__(self, part, x, dagger=False):
        f = {'M': self.op.apply, 'hop': self.op.hops, 'clover': self.op.local, 'clover_inverse': self.op.local_inverse}
        if part == 'clover_inverse_hop':
            return self('clover_inverse', self('hop', x, dagger), dagger)
        return G5 * f[part](G5 * x) if dagger else f[part](x)

    def schur(self, x, dagger, asymmetric):
        """Mhat of a field of one parity, or A Mhat, or the adjoint."""
        if dagger and not asymmetric:
            return x - self('hop', self('clover_inverse_hop', self('clover_inverse', x, True), True), True) / 4
        back = self('hop', self('clover_inverse_hop', x, dagger), dagger) / 4
        return self('clover', x, dagger) - back if asymmetric else x - self('clover_inverse', back)


@tap.test
def parts_of_the_operator_are_those_of_the_oracle(case):
    part, b = Parts(case.op), random_sources(2)
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            for name in 'M', 'hop', 'clover', 'clover_inverse', 'clover_inverse_hop':
                for dagger in False, True:
                    assert near(q.apply(b[0], name, dagger=dagger), part(name, b[0], dagger)), (name, dagger)
            y = q.apply(b.astype('complex64'))
            assert y.dtype == np.complex64 and all(near(y[i], part('M', b[i]), 1e-6) for i in range(2))
            even, odd = (quarkd.half(b[0], p) for p in ('even', 'odd'))
            there = quarkd.half(part('hop', quarkd.whole(odd, 'odd')), 'even')
            assert near(q.apply(odd, 'hop', parity='even'), there) and even.shape == (8, 4, 4, 2, 4, 3)
            for dagger in False, True:
                for form in 'symmetric', 'asymmetric':
                    want = part.schur(quarkd.whole(even, 'even'), dagger, form == 'asymmetric')
                    assert near(q.apply(even, 'schur', parity='even', schur=form, dagger=dagger), quarkd.half(want, 'even')), (dagger, form)
            prop = q.propagator('point:1,2,3,5', tol=1e-12)
            sources = q.apply(prop)
            assert near(sources, q.apply(quarkd.point(1, 2, 3, 5), 'smear'), 1e-11) and sources.sum().round(9) == 12
            error = raises(ValueError, lambda: q.apply(b[0], 'D'), "'D'", 'clover_inverse')
            assert 'solve' not in str(error), error
            raises(ValueError, lambda: q.apply(b[0], 'M', tol=1e-3))
            raises(ValueError, lambda: q.apply(even, 'schur'), 'shape')
            raises(ValueError, lambda: q.apply(b[0], 'schur'), 'parity')
            raises(ValueError, lambda: q.solve(b[0], schur='symmetric'), 'parity')
            raises(ValueError, lambda: q.apply(b[0], 'hop', parity='left'), 'even or odd')


@tap.test
def adjoints_and_systems_of_one_parity_are_solved(case):
    part, b = Parts(case.op), random_sources(1)[0]
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            x = q.solve(b, dagger=True)
            assert np.linalg.norm(b - part('M', x, True)) < 1.01e-10 * np.linalg.norm(b)
            assert np.linalg.norm(b - part('M', part('M', q.solve(x)), True)) < 1e-8 * np.linalg.norm(b)  # M^+M x = b by two solves
            for parity in 'even', 'odd':
                sent = quarkd.half(b, parity)
                for form in 'symmetric', 'asymmetric':
                    x = quarkd.whole(q.solve(sent, parity=parity, schur=form), parity)
                    left = quarkd.half(part.schur(x, False, form == 'asymmetric'), parity)
                    assert near(left, sent, 1.01e-10), (parity, form)
            assert off(case.op, q.solve(b, batch_only=True), b) < 1.01e-10


def heavy_quark(op, x, b):
    r2, x2 = ((abs(v) ** 2).reshape(-1, 12).sum(1) for v in (b - op.apply(x), x))
    return np.sqrt(np.mean(np.where(x2 == 0, 1, r2 / np.where(x2 == 0, 1, x2))))


@tap.test
def residuals_are_relative_absolute_or_of_heavy_quarks(case):
    b = random_sources(1)[0]
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            f = q.submit(1e6 * b, tol_abs=1e-1)
            assert np.linalg.norm(1e6 * b - case.op.apply(f.result())) <= 0.1001 and f.info().hq_residual != f.info().hq_residual
            f = q.submit(b, tol_hq=1e-6)
            assert heavy_quark(case.op, f.result(), b) < 1.001e-6 and f.info().hq_residual < 1e-6 and f.info().residual > 1e-12
            e = raises(quarkd.ConvergenceError, lambda: q.solve(b, tol_hq=1e-25), 'heavy-quark')
            assert 0 < e.hq_residual < 1e-12 and e.solution is not None
            for terms in {'tol': 0.0}, {'tol': -1.0}, {'tol_abs': float('nan')}, {'tol': float('inf')}:
                raises(ValueError, lambda terms=terms: q.solve(b, **terms), 'finite')
            prop = q.propagator('point:0,0,0,0', tol_abs=1e-9, tol_hq=1e-5)
            prop.to_hdf5(d.path('hq.h5'))
            prop.sequential('g5', 3)
        with h5py.File(d.path('hq.h5')) as f:
            assert 'tolerance' not in f.attrs and f.attrs['tolerance_abs'] == 1e-9 and f.attrs['tolerance_hq'] == 1e-5
            assert (f['columns']['hq_residual'] < 1e-5).all()


def philox(seed, counters):
    """Philox4x32-10: [n, 4] words of counters [n, 4]."""
    m, w, low = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 0xFFFFFFFF
    c, key = [counters[:, i].astype(np.uint64) for i in range(4)], [seed & low, seed >> 32]
    for _ in range(10):
        a, b = np.uint64(m[0]) * c[0], np.uint64(m[1]) * c[2]
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), b & np.uint64(low), (a >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), a & np.uint64(low)]
        key = [(k + v) & low for k, v in zip(key, w)]
    return np.stack(c, 1)


def noise(seed, kind):
    """docs/physics.md, Sources: on all sites."""
    sites = int(np.prod(SHAPE[:4]))
    numbers = np.array([(n, 0, c, 0) for n in range(sites) for c in range(3)])
    words = philox(seed, numbers).reshape(SHAPE).astype(np.int64)
    re, im = (1 - 2 * (words >> s & 1) for s in (31, 30))
    return re + 0j if kind == 'z2' else (re + 1j * im) / np.sqrt(2)


def diluted(field):
    """By spin and colour, spin first."""
    out = np.zeros((12,) + SHAPE, complex)
    for i in range(12):
        out[i, ..., i // 3, i % 3] = field[..., i // 3, i % 3]
    return out


def on_slices(field, *t):
    out = np.zeros_like(field)
    out[list(t)] = field[list(t)]
    return out


@tap.test
def noise_walls_and_smearing_are_those_of_the_documentation(case):
    wave = np.exp(2j * np.pi * np.arange(4) / 4)[None, :, None, None]  # of p = 1 in y, on [z, y, x, component]
    wall = np.zeros(SHAPE, complex)
    wall[2, ..., 3, 1] = wave[..., 0]
    gauss = quarkd.gauss(alpha=0.3, steps=4, links=quarkd.stout(0.1, 2))
    thick = smear_ref.smear_links(case.links, 'stout:0.1,2')
    with case.daemon('--slots=12') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            for source, want in ((quarkd.z2(7), noise(7, 'z2')), (quarkd.z4(1 << 40, 3), on_slices(noise(1 << 40, 'z4'), 3)),
                                 (quarkd.z4(5, 1, every=4), on_slices(noise(5, 'z4'), 1, 5))):
                assert np.abs(q.apply(source, 'smear')[0] - want).max() < 1e-15, str(source)
                prop = q.propagator(source)
                assert len(prop) == 1 and off(case.op, prop.columns()[0], want) < 1.01e-10, str(source)
            prop = q.propagator(quarkd.z4(9, 0, count=2, dilute='spin+colour'))
            want = np.concatenate([diluted(on_slices(noise(seed, 'z4'), 0)) for seed in (9, 10)])
            assert len(prop) == 24 and max(off(case.op, *pair) for pair in zip(prop.columns(), want)) < 1.01e-10
            raises(ValueError, prop.numpy, '24 columns')
            assert near(q.apply(quarkd.wall(2, (0, 1, 0)), 'smear')[10], wall)
            b = random_sources(1)[0]
            smeared = smear_ref.smear_source(thick, b, 'gauss:0.3,4')
            assert near(q.apply(b, 'smear', smearing=gauss), smeared) and off(case.op, q.solve(b, smearing=gauss), smeared) < 1.01e-10
            prop = q.propagator(quarkd.wall(2, (0, 1, 0)).smeared(gauss))
            assert off(case.op, prop[3, 1].numpy(), smear_ref.smear_source(thick, wall, 'gauss:0.3,4')) < 1.01e-10
            x = prop.sequential('gxgt', 4, (1, 0, 0))[3, 1].numpy()
            wave = np.exp(2j * np.pi * np.arange(4) / 4)[:, None, None]
            through = on_slices(np.einsum('ij,...jc->...ic', quarkd.gamma.matrix('gxgt'), prop[3, 1].numpy()) * wave, 4)
            assert off(case.op, x, through) < 1.01e-10


def started(case, action, **values):
    settings = ['--set=%s=%r' % item for item in values.items()]
    return Daemon(case.quarkd, case.quarkctl, '--gauge=' + GAUGE, '--action=' + action, '--kappa=%r' % KAPPA, '--csw=%r' % CSW, '--slots=12', *settings)


@tap.test
def both_flavours_of_twisted_mass_and_doublets(case):
    b = random_sources(1)[0]
    point = np.zeros(SHAPE, complex)
    point[5, 3, 2, 1, 2, 1] = 1
    with started(case, 'twisted-clover', mu=MU) as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            for flavour in 1, -1:
                op = ref.ACTIONS['twisted-clover'](case.links, ref.ANTIPERIODIC, mass=MASS, mu=MU, csw=CSW, flavour=flavour)
                assert off(op, q.solve(b, flavour=flavour), b) < 1.01e-10 and near(q.apply(b, 'M', flavour=flavour), op.apply(b))
                prop = q.propagator(quarkd.point(1, 2, 3, 5), flavour=flavour)
                assert off(op, prop[2, 1].numpy(), point) < 1.01e-10
                x = prop.sequential('g5', 4, flavour=-flavour)[2, 1].numpy()
                other = ref.ACTIONS['twisted-clover'](case.links, ref.ANTIPERIODIC, mass=MASS, mu=MU, csw=CSW, flavour=-flavour)
                assert off(other, x, on_slices(G5 * prop[2, 1].numpy(), 4)) < 1.01e-10
                raises(ValueError, lambda: q.propagator(quarkd.point(0, 0, 0, 0, flavour=1)), 'doublets')
    op = ref.ACTIONS['doublet'](case.links, ref.ANTIPERIODIC, mass=MASS, mu=MU, epsilon=0.2, csw=CSW)
    with started(case, 'doublet', mu=MU, epsilon=0.2) as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            b = np.stack([b, 1j * b[::-1]])
            assert q.shape == b.shape and off(op, q.solve(b), b) < 1.01e-10 and near(q.apply(b), op.apply(b))
            prop = q.propagator(quarkd.point(1, 2, 3, 5))
            assert len(prop) == 24 and off(op, prop[12 + 7].numpy(), np.stack([0 * point, point])) < 1.01e-10
            alone = q.propagator(quarkd.point(1, 2, 3, 5, flavour=-1))
            assert len(alone) == 12 and near(alone[7].numpy(), prop[19].numpy(), 1e-9)
            prop = q.propagator(quarkd.z4(3, dilute='flavour'))
            want = np.stack([noise(3, 'z4'), 0 * point]), np.stack([0 * point, noise(3 ^ 1 << 63, 'z4')])
            assert max(off(op, *pair) for pair in zip(prop.columns(), want)) < 1.01e-10


@tap.test
def domain_wall_fermions_have_sums_over_time_slices(case):
    """Together with the field that they are sums of; in the file, too."""
    more = ['--action=moebius', '--set=Ls=4', '--set=M5=1.4', '--set=mass=0.2', '--set=b=1.5', '--set=c=0.5', '--solver=cg']
    with Daemon(case.quarkd, case.quarkctl, '--gauge=' + GAUGE, *more) as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            prop = q.propagator(quarkd.point(0, 1, 0, 3), tol=1e-11)
            w = prop.wall_sums()
            norm = (abs(prop.columns()) ** 2).sum((0, 2, 3, 4, 5, 6))
            assert np.allclose(w.quark, norm, rtol=1e-12, atol=0) and w.t0 == 3 and len(w.axial) == len(norm), w
            assert (w.residual_mass > 0).all() and w.plateau() == np.roll(w.midpoint / w.quark, -3)[len(norm) // 4:-(len(norm) // 4) + 1].mean()
            prop.to_hdf5(d.path('prop.h5'))
            with h5py.File(d.path('prop.h5')) as f:
                group = f['wall']
                assert np.array_equal(group['axial'][...].sum(0), w.axial) and group.attrs['residual_mass'] == w.plateau() and group.attrs['t0'] == 3
                assert np.array_equal(group['residual_mass'][...], w.residual_mass) and group['quark'].shape == (12, len(norm))
            noise = q.propagator(quarkd.z2(1), tol=1e-6).wall_sums()
            assert noise.t0 is None
            raises(ValueError, noise.plateau, 'no one time slice')
            b = np.zeros(q.shape, complex)
            b[3, 0, 1, 0, 0, 0] = 1
            assert q.status().shape_five == (4,) + q.shape
            five = q.solve(quarkd.point(0, 1, 0, 3), tol=1e-11, five_d=True)  # the quark is on the walls of psi
            quark = np.concatenate([five[:, -1, ..., :2, :], five[:, 0, ..., 2:, :]], axis=-2)
            assert five.shape == (12, 4) + q.shape and np.linalg.norm(quark - prop.columns()) < 1e-9 * np.linalg.norm(quark)
            b5 = np.random.default_rng(2).normal(size=(2, 4) + q.shape) + 0j
            both = q.solve(b5, tol=1e-8, five_d=True)
            assert both.shape == b5.shape and np.linalg.norm(q.solve(b5[1], tol=1e-8, five_d=True) - both[1]) < 1e-6 * np.linalg.norm(both[1])
            raises(ValueError, lambda: q.solve(b, five_d=True), 'shape')
            f = q.submit(b, tol=1e-11)
            assert np.allclose(f.wall_sums().quark, (abs(f.result()) ** 2).sum((1, 2, 3, 4, 5)), rtol=1e-12, atol=0)
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            assert q.submit(b).wall_sums() is None
            raises(ValueError, lambda: q.solve(b5, five_d=True), 'four dimensions')
            raises(ValueError, q.propagator(quarkd.point(0, 0, 0, 0)).wall_sums, 'domain wall')


tap.run(Case(*sys.argv[1:]))
