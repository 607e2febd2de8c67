#!/usr/bin/env python3
"""--tol-abs, --tol-hq and all-mode averaging by quarkctl, with the real daemon: test_stopping_cli.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE

Residuals are those of numpy; averages are made by numpy of what single `quarkctl correlator`s give.
"""
import sys

from cli_case import DATA, DIMS, SHAPE, USAGE, Case, h5py, np, read_field, tap

COMPONENTS = 12


# ---- residuals --------------------------------------------------------------------------------------


def heavy_quark(case, x, b, scale=1):
    r = b - scale * case.op.apply(x.reshape(b.shape))
    r2, x2 = ((abs(v) ** 2).reshape(-1, COMPONENTS).sum(1) for v in (r, x))
    return np.sqrt(np.mean(np.where(x2 == 0, 1, r2 / np.where(x2 == 0, 1, x2))))


def columns_of(site):
    for i in range(COMPONENTS):
        b = np.zeros(SHAPE, complex)
        b[site[::-1]][i // 3, i % 3] = 1
        yield b


@tap.test
def a_propagator_is_solved_to_the_heavy_quark_residual(case):
    with case.daemon() as d:
        path = d.path('hq.h5')
        done = d.ctl('propagator', '--source=point:1,2,3,4', '--tol-hq=1e-5', '--normalisation=kappa', '--out', path, '--json')
        assert done.code == 0, done
        assert (done.json['tolerance'], done.json['tolerance_abs'], done.json['tolerance_hq']) == (None, None, 1e-5)
        with h5py.File(path) as f:
            assert f.attrs['tolerance_hq'] == 1e-5 and 'tolerance' not in f.attrs and 'tolerance_abs' not in f.attrs
            said = f['columns']['hq_residual']
            kappa2 = 2 * f.attrs['kappa']
        x = read_field(path)
        for i, b in enumerate(columns_of((1, 2, 3, 4))):
            true = heavy_quark(case, x[i], b, kappa2)
            assert abs(true - said[i]) < 1e-3 * true and true <= 1.001e-5 and done.json['rhs'][i]['hq_residual'] == said[i], (i, true)
        text = d.ctl('propagator', '--source=point:1,2,3,4', '--tol-hq=1e-5', '--out', path)
        assert text.code == 0 and 'largest heavy-quark residual' in text.out, text


@tap.test
def an_absolute_residual_may_stand_beside_a_relative_one(case):
    with case.daemon() as d:
        path = d.path('abs.h5')
        assert d.ctl('propagator', '--source=point:0,0,0,0', '--tol=1e-2', '--tol-abs=1e-7', '--out', path).code == 0
        with h5py.File(path) as f:
            assert (f.attrs['tolerance'], f.attrs['tolerance_abs']) == (1e-2, 1e-7) and 'tolerance_hq' not in f.attrs
            assert (f['columns']['true_residual'] <= 1e-7).all() and np.isnan(f['columns']['hq_residual']).all()
        done = d.ctl('propagator', '--source=point:0,0,0,0', '--tol-abs=1e-30', '--out', path, '--json')
        assert done.code == DATA and all(r['status'] == 'NOT_CONVERGED' for r in done.json['rhs']), done


@tap.test
def tolerances_that_are_none_are_usage_errors(case):
    for option in '--tol-abs=0', '--tol-abs=-1', '--tol-hq=nan', '--tol-hq=x', '--tol-hq=1e9', '--tol-abs=inf':
        done = case.ctl('propagator', '--source=point:0,0,0,0', option, '--out=/nowhere/x.h5')
        assert done.code == USAGE and option.split('=')[0] in done.err, (option, done)


# ---- all-mode averaging -----------------------------------------------------------------------------


def pieces_of(path):
    """{label: (datasets, attributes)}"""
    out = {}
    with h5py.File(path) as f:
        for config in f.values():
            for quark in config.values():
                for label, piece in quark.items():
                    out[label] = {k: v[...] for k, v in piece.items()}, dict(piece.attrs)
    return out


def text_of(x):
    return x.decode() if isinstance(x, bytes) else x


def parts(pieces, part):
    return [p for p in pieces.values() if text_of(p[1].get('part', b'')) == part]


def ama(d, name, *options, sloppy='6:1e-3', exact='2:1e-11', source='point:1,0,0,3', code=0):
    path = d.path(name)
    done = d.ctl('correlator', '--source=' + source, '--ama=' + sloppy, '--exact=' + exact, '--out', path, '--json', *options)
    assert done.code == code, done
    return pieces_of(path) if code == 0 else done


WHAT = '--channels=pion,nucleon,g5-gxgt', '--momenta=0,0,0;1,0,-1', '--smear=gauss:0.2,3'
CHANNELS = 'pion', 'nucleon', 'g5-gxgt'


@tap.test
def the_average_is_that_of_numpy(case):
    with case.daemon() as d:
        found = ama(d, 'ama.h5', '--ama-seed=77', *WHAT)
        sloppy, exact, corrections = (parts(found, p) for p in ('sloppy', 'exact', 'correction'))
        (mean, said), = parts(found, 'mean')
        (error, _), = parts(found, 'error')
        assert (len(sloppy), len(exact), len(corrections), len(found)) == (6, 2, 2, 12)
        assert text_of(said['seed']) == '77' and text_of(said['ama']) == '6:0.001 exact 2:1e-11' and 'tolerance' not in said
        assert text_of(said['source']) == 'point:1,0,0,3'
        offset = [int(x) for x in text_of(said['offset']).split(',')]
        assert (said['origin'] == (np.array((1, 0, 0, 3)) + offset) % DIMS).all(), (offset, said['origin'])
        sites = {tuple(p[1]['origin']) for p in sloppy}
        assert len(sites) == 6 and {tuple(p[1]['origin']) for p in exact} <= sites and tuple(said['origin']) in sites
        of = {tuple(p[1]['origin']): p[0] for p in sloppy}
        for name in CHANNELS:
            s = np.array([p[0][name] for p in sloppy])
            c = np.array([p[0][name] - of[tuple(p[1]['origin'])][name] for p in exact])
            want = s.mean(0) + c.mean(0)
            assert abs(mean[name] - want).max() < 1e-13 * abs(want).max(), name
            for part in 'real', 'imag':
                spread = np.sqrt(getattr(s, part).var(0, ddof=1) / 6 + getattr(c, part).var(0, ddof=1) / 2)
                assert abs(getattr(error[name], part) - spread).max() < 1e-12 * abs(want).max() + 1e-9 * spread.max(), name
            told = {tuple(p[1]['origin']): p[0][name] for p in corrections}
            for p in exact:
                assert np.array_equal(told[tuple(p[1]['origin'])], p[0][name] - of[tuple(p[1]['origin'])][name])
        # each exact one is what a correlator of its source alone is
        for data, at in exact:
            path = d.path('one.h5')
            assert d.ctl('correlator', '--source=' + text_of(at['source']), '--tol=1e-11', '--out', path, *WHAT).code == 0
            (one, attrs), = pieces_of(path).values()
            assert not [k for k in ('part', 'ama', 'seed', 'offset') if k in attrs], attrs
            for name in CHANNELS:
                assert abs(one[name] - data[name]).max() < 1e-8 * abs(one[name]).max(), name
        assert d.ctl('status', '--json').json['counters']['kept'] == 0
        shown = d.ctl('correlator', d.path('ama.h5'))
        assert shown.code == 0 and shown.out.count('ama.mean') == 1 and 'error' in shown.out and '11 parts' in shown.out, shown
        assert len(d.ctl('correlator', d.path('ama.h5'), '--json').json['pieces']) == 12


@tap.test
def the_same_tolerance_needs_no_correction(case):
    """Whatever else is solved: to the last bit."""
    with case.daemon() as d:
        found = ama(d, 'same.h5', sloppy='3:1e-6', exact='3:1e-6')
        for data, _ in parts(found, 'correction'):
            assert (data['pion'] == 0).all()
        (mean, at), = parts(found, 'mean')
        assert abs(mean['pion'] - np.mean([p[0]['pion'] for p in parts(found, 'sloppy')], axis=0)).max() < 1e-14 * abs(mean['pion']).max()
        digest = text_of(at['digest'])
        assert int(text_of(at['seed'])) == int(digest, 16), 'the seed is the digest of the configuration unless one is given'
        again = ama(d, 'again.h5', '--ama-seed=%d' % int(digest, 16), sloppy='3:1e-6', exact='1:1e-6')
        assert {tuple(p[1]['origin']) for p in parts(again, 'sloppy')} == {tuple(p[1]['origin']) for p in parts(found, 'sloppy')}
        (one, _), = parts(ama(d, 'one.h5', '--ama-seed=1', sloppy='1:1e-3', exact='1:1e-9'), 'error')
        assert np.isnan(one['pion'].real).all(), 'one source has no error'


@tap.test
def walls_move_in_time_alone(case):
    with case.daemon() as d:
        found = ama(d, 'wall.h5', '--ama-seed=3', source='wall:2,p=1:0:0', sloppy='4:1e-3', exact='1:1e-9')
        sources = sorted(text_of(p[1]['source']) for p in parts(found, 'sloppy'))
        assert len(set(sources)) == 4 and all(s.startswith('wall:') and s.endswith(',p=1:0:0') for s in sources), sources
        done = ama(d, 'none.h5', source='wall:0', sloppy='%d:1e-3' % (DIMS[3] + 1), exact='1:1e-9', code=USAGE)
        assert 'can stand at %d places' % DIMS[3] in done.err, done


@tap.test
def what_cannot_be_meant_is_named(case):
    base = 'correlator', '--source=point:0,0,0,0', '--out=/nowhere/x.h5'
    for options, words in ((['--ama=32:1e-4'], '--exact'), (['--exact=1:1e-9'], '--ama'), (['--ama-seed=1'], '--ama-seed'),
                           (['--ama=2:1e-4', '--exact=3:1e-9'], '--exact: 3 sources, of the 2'), (['--ama=32', '--exact=1:1e-9'], '--ama=32'),
                           (['--ama=0:1e-4', '--exact=1:1e-9'], '--ama=0:1e-4'), (['--ama=4:2', '--exact=1:1e-9'], '0.999'),
                           (['--ama=4:1e-4', '--exact=1:x'], '--exact=1:x'), (['--ama=4:1e-4', '--exact=1:1e-9', '--tol=1e-8'], '--tol'),
                           (['--ama=4:1e-4', '--exact=1:1e-9', '--tol-hq=1e-8'], '--tol-hq'),
                           (['--ama=4:1e-4', '--exact=1:1e-9', '--ama-seed=-1'], '--ama-seed=-1')):
        done = case.ctl(*base, *options)
        assert done.code == USAGE and words in done.err, (options, done)
    done = case.ctl('correlator', 'x.h5', '--ama=4:1e-4', '--exact=1:1e-9')
    assert done.code == USAGE and '--source' in done.err, done


@tap.test
def what_fails_leaves_no_file(case):
    with case.daemon() as d:
        done = ama(d, 'bad.h5', '--max-iter=1', sloppy='2:1e-10', exact='1:1e-12', code=DATA)
        assert 'NOT_CONVERGED' in done.err, done
        done = ama(d, 'out.h5', source='point:%d,0,0,0' % DIMS[0], code=USAGE)
        assert 'point:%d,0,0,0' % DIMS[0] in done.err, done
        done = ama(d, 'no/such/folder.h5', code=DATA)
        assert 'no/such' in done.err, done
        assert not d.ctl('correlator', d.path('bad.h5')).code == 0


tap.run(Case(*sys.argv[1:]))
