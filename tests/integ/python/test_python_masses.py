"""Several masses of staggered fermions in Python, judged by the oracle: test_python_masses.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import asyncio
import sys
import time
import warnings

from cli_case import DIMS, StaggeredCase, h5py, np, tap
import quarkd

LATTICE = tuple(reversed(DIMS))
MASSES = 0.3, 0.05, 1.5


def noise(n, dtype=complex):
    return (np.random.default_rng(4).normal(size=(n,) + LATTICE + (3, 2)) @ np.array([1, 1j])).astype(dtype)


def refused(call, *words):
    try:
        call()
    except (ValueError, quarkd.Error) as e:
        assert all(word in str(e) for word in words), e
    else:
        raise AssertionError('not refused')


@tap.test
def solutions_have_an_axis_of_masses(case):
    b = noise(3)
    with case.daemon('--slots=4') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            buffer = q.empty((3,) + q.shape)
            buffer[...] = b
            for given in b, buffer:
                x = q.solve(given, masses=MASSES, tol=1e-11)
                assert x.shape == (3, 3) + LATTICE + (3,), x.shape
                for of_mass, mass in zip(x, MASSES):
                    for pair in zip(of_mass, b):
                        assert case.off(*pair, mass) < 1.01e-11, mass
            for one in b[1], q.empty():
                one[...] = b[1]
                x = q.solve(one, masses=MASSES[:2], tol=1e-11)
                assert x.shape == (2,) + LATTICE + (3,) and all(case.off(x[k], b[1], MASSES[k]) < 1.01e-11 for k in range(2))
            assert q.solve(b[0], masses=[0.3], tol=1e-11).shape == (1,) + LATTICE + (3,)
            assert q.solve(b[:1], masses=np.array([0.3, 1.5]), tol=1e-11).shape == (2, 1) + LATTICE + (3,)
            light = q.solve(b[0].astype('complex64'), masses=MASSES, tol=1e-6)
            assert light.dtype == np.complex64 and all(case.off(x, b[0], m) < 1e-5 for x, m in zip(light, MASSES))
            futures = q.submit_many(b, masses=MASSES, tol=1e-11)
            assert [f.rhs for f in futures] == list(range(9))
            assert case.off(futures[5].result(), b[2], MASSES[1]) < 1.01e-11 and futures[5].info().residual <= 1e-11
            wall = q.solve(quarkd.wall(3), masses=MASSES, tol=1e-11)
            source = np.zeros(LATTICE + (3,))
            source[3, ..., 1] = 1
            assert wall.shape == (3, 3) + LATTICE + (3,) and all(case.off(wall[k, 1], source, MASSES[k]) < 1.01e-11 for k in range(3))

        async def later():
            async with quarkd.aconnect(d.endpoint) as q:
                x = await q.solve(b, masses=MASSES, tol=1e-11)
                props = await q.propagators('point:0,0,0,0', MASSES)
                return x, [p.report.setup['mass'] for p in props]
        x, found = asyncio.run(later())
        assert case.off(x[2, 1], b[1], MASSES[2]) < 1.01e-11 and found == list(MASSES)


@tap.test
def propagators_are_those_of_each_mass(case):
    """As of a daemon of that mass: solutions, correlators, files, sequential sources; and by the oracle."""
    with case.daemon() as d, case.daemon(mass='0.05') as other:
        d.wait_listening()
        other.wait_listening()
        with quarkd.connect(d.endpoint) as q, quarkd.connect(other.endpoint) as alone:
            props = q.propagators(quarkd.point(1, 2, 3, 5), MASSES, tol=1e-12)
            assert [len(p) for p in props] == [3, 3, 3] and len({p.request.number for p in props}) == 1
            for prop, mass in zip(props, MASSES):
                for colour in range(3):
                    b = np.zeros(LATTICE + (3,))
                    b[5, 3, 2, 1, colour] = 1
                    assert case.off(prop[0, colour].numpy(), b, mass) < 1.01e-12
            prop, want = props[1], alone.propagator(quarkd.point(1, 2, 3, 5), tol=1e-12)
            channels, momenta = ['pion', 'rho', 'nucleon_corner'], [(0, 0, 0), (1, 0, 0)]
            ours, theirs = prop.correlator(channels, momenta), want.correlator(channels, momenta)
            for name in channels:
                assert np.abs(ours[name].values - theirs[name].values).max() < 1e-9 * np.abs(theirs[name].values).max(), name
            mixed = props[0].correlator('pion', anti=props[2])['pion'].values[0]
            product = (props[2].numpy().conj() * props[0].numpy()).sum((1, 2, 3, 4, 5))
            assert np.abs(mixed - np.roll(product, -5)).max() < 1e-11 * np.abs(mixed).max()
            through = prop.sequential('id', t=6, tol=1e-11)
            b = np.zeros(LATTICE + (3,), complex)
            b[6] = prop[1].numpy()[6]
            assert case.off(through[1].numpy(), b, 0.7) < 1.01e-11
            prop.to_hdf5(d.path('prop.h5'))
            ours.to_hdf5(d.path('corr.h5'))
            with h5py.File(d.path('prop.h5')) as f:
                assert f.attrs['mass'] == 0.05 and f.attrs['action'] == b'staggered;mass=0.05' and np.array_equal(f['field'][2], prop[2].numpy())
            shown = d.ctl('correlator', d.path('corr.h5'), '--json').json['pieces'][0]
            assert shown['mass'] == 0.05 and shown['quark'] == 'mass=0.05', shown
            for gone in 0, 1:  # the request stays for the last one
                props[gone].release()
                assert props[2].correlator('pion')['pion'].values.shape == (1, DIMS[3])
            props[2].release()
            refused(lambda: props[2].correlator('pion'))


@tap.test
def tastes_are_those_of_quarkctl(case):
    """Which the oracle judges: plain, with everything smeared, and of one of several masses."""
    smeared = '--smear=gauss:0.2,3', '--smear-sink=gauss:0.1,2', '--smear-links=ape:0.5,2'
    links = quarkd.ape(0.5, 2)
    source = quarkd.point(1, 2, 3, 5)
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            for how, prop, sink in (((), q.propagator(source, tol=1e-12), None),
                                    (smeared, q.propagator(source.smeared(alpha=0.2, steps=3, links=links), tol=1e-12), quarkd.gauss(alpha=0.1, steps=2, links=links)),
                                    ((smeared[0], smeared[2]), q.propagator(source.smeared(alpha=0.2, steps=3, links=links), tol=1e-12), None),
                                    (('--masses=0.05',), q.propagators(source, [0.3, 0.05], tol=1e-12)[1], None)):
                out = d.path('c.h5')
                assert d.ctl('correlator', '--source=point:1,2,3,5', '--channels=tastes,gx-gxgy,a0', '--tol=1e-12', *how, '--out', out).code == 0
                [want] = quarkd.io.read_correlators(out if how != ('--masses=0.05',) else d.path('c_m0.05.h5'))
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter('always')
                    found = prop.correlator('tastes,gx-gxgy,a0', sink=sink)
                assert ['smearing mixes even and odd sites' in str(w.message) for w in told] == [True] * (smeared[0] in how), (how, told)
                assert list(found) == list(want) and len(found) == 10
                for name, c in found.items():
                    assert np.abs(c.values - want[name].values).max() < 1e-9 * np.abs(want[name].values).max(), (how, name)
                    assert c.form == want[name].form == {'pion': 'cosh', 'gx-gxgy': 'log'}.get(name, 'smooth'), name
    with case.daemon(action='wilson', mass='0.3') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            refused(lambda: q.propagator(source, tol=1e-6).correlator('tastes'), 'colour alone')


@tap.test
def shifted_sources_are_solved_for_by_the_same_setup(case):
    """Another default, or another operator of that name, is not mixed with the propagator."""
    with case.daemon('--gauge-roots', '/') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            prop, several = q.propagator(quarkd.point(0, 0, 0, 0), tol=1e-10), q.propagators(quarkd.point(0, 0, 0, 0), MASSES, tol=1e-10)
            assert [p.mass for p in several] == list(MASSES)
            before = [p.correlator('pioni5')['pioni5'].at(0, 0, 0) for p in (prop, several[1])]
            q.load('heavy', mass=0.9)
            q.make_default('heavy')
            after = [p.correlator('pioni5')['pioni5'].at(0, 0, 0) for p in (prop, several[1])]
            assert np.allclose(before, after, rtol=1e-12), (before, after)
            heavy = q.propagator(quarkd.point(0, 0, 0, 0), tol=1e-6)
            q.make_default('main')
            q.drop('heavy')
            while any(s.name == 'heavy' for s in q.setups()):
                time.sleep(0.05)
            q.load('heavy', mass=0.8)
            refused(lambda: heavy.correlator('pioni5'), 'another operator')


@tap.test
def a_setup_that_another_client_loads_again_is_told_as_it_is(case):
    with case.daemon('--gauge-roots', '/') as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q, quarkd.connect(d.endpoint) as other:
            for mass in 0.9, 0.8:
                other.load('heavy', mass=mass)
                prop = q.propagator(quarkd.point(0, 0, 0, 0), setup='heavy', tol=1e-6)
                assert prop.mass == mass and float(prop.report.setup['parameters']['mass']) == mass, (mass, prop.report)
                other.drop('heavy')
                while any(s.name == 'heavy' for s in other.setups()):
                    time.sleep(0.05)
            refused(lambda: q.load('bad', mass=0.5, solver='cg', deflate=4000), 'at most')
            for ask in (lambda: q.propagator(quarkd.point(0, 0, 0, 0), setup='bad')), (lambda: quarkd.connect(d.endpoint, setup='bad').ready()):
                refused(ask, 'bad', 'at most')


@tap.test
def what_cannot_be_is_refused(case):
    b = noise(1)[0]
    with case.daemon() as d:
        d.wait_listening()
        with quarkd.connect(d.endpoint) as q:
            for masses in [], [0.1, 0.1], [0.1 * (k + 1) for k in range(17)], [float('nan')]:
                refused(lambda: q.solve(b, masses=masses), 'masses')
            refused(lambda: q.solve(b, masses=[0.1, -2]), 'masses[1] = -2')
            refused(lambda: q.solve(b, masses=[0.1], tol_abs=1e-5), 'tol')
            refused(lambda: q.apply(b, masses=[0.1]), 'nothing is solved')
            refused(lambda: q.propagator(quarkd.point(0, 0, 0, 0), tol=1e-6).correlator('g5-gx'), 'not in t')
            wall = q.propagator(quarkd.wall(0), tol=1e-6)
            refused(lambda: wall.correlator('tastes'), 'point source', 'wall:0')
            refused(lambda: wall.correlator(['pion', 'rho']), 'average to zero', 'wall:0')
            assert len(wall.correlator(['pion', 'nucleon_corner'])) == 2
            assert len(q.propagator(quarkd.wall(0, (2, 0, 0)), tol=1e-6).correlator('rho', anti=wall)) == 1
            refused(lambda: quarkd.point(0, 0, 0, 0).shifted('xt'), 'x, y and z')
            for field in b, np.zeros((2, 8, 6, 6, 6, 3)):
                refused(lambda: quarkd.half(field, 'even'), '4 spins, 3 colours', 'colour alone')
                refused(lambda: quarkd.whole(field, 'even'), '4 spins, 3 colours', 'colour alone')


tap.run(StaggeredCase(*sys.argv[1:]))
