"""Files, tickets, and what programs of analysis get: test_python_files.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import importlib.util
import json
import os
import subprocess
import sys
import types

from cli_case import Case, h5py, np, random_sources, tap, write_sources
import scidac
import quarkd
from quarkd import io


def raises(kind, call, *words):
    try:
        call()
    except kind as e:
        assert all(word in str(e) for word in words), e
        return
    raise AssertionError('nothing was raised')


def same_columns(a, b):
    """What does not depend on how long it took."""
    for name in set(a.dtype.names) - {'seconds', 'true_residual', 'iterations'}:
        x, y = a[name], b[name]
        assert np.array_equal(x, y) or (x.dtype.kind == 'f' and np.isnan(x).all() and np.isnan(y).all()), (name, x, y)


@tap.test
def scidac_files_are_those_of_quarkctl_and_of_an_independent_reader(case):
    if not importlib.util.find_spec('quarkd._files'):
        raise tap.Skip('quarkd was built without zlib')
    with case.daemon('--slots=12') as d:
        theirs = d.path('theirs.lime')
        assert d.ctl('propagator', '--source=point:1,2,3,5', '--tol=1e-11', '--out', theirs).code == 0
        with quarkd.connect(d.endpoint) as q:
            for dtype, kind in ('complex128', np.complex128), ('complex64', np.complex64):
                prop = q.propagator('point:1,2,3,5', tol=1e-11 if kind is np.complex128 else 1e-6, dtype=dtype)
                ours = {form: d.path('%s.%s.lime' % (form, dtype)) for form in ('scidac', 'usqcd')}
                for form, path in ours.items():
                    prop.to_scidac(path, form)
                    field = io.read_field(path)
                    assert repr(field) == 'Field(%s of shape %s, %s)' % (field.field.dtype, field.field.shape, prop.source), repr(field)
                    assert field.field.dtype == kind and np.array_equal(field.field, prop.columns())
                    assert np.array_equal(scidac.columns(path), prop.columns()) and np.array_equal(field.propagator(), prop.numpy())
                    prop.to_hdf5(d.path('p.h5'))
                    h5 = io.read_field(d.path('p.h5'))
                    same_columns(field.columns, h5.columns)
                    for name, value in h5.attributes.items():
                        assert name in ('format', 'format_version', 'program') or np.array_equal(field.attributes[name], value), (name, value)
                if kind is np.complex128:
                    other = io.read_field(theirs)
                    assert np.abs(other.field - prop.columns()).max() < 1e-9
                    same_columns(other.columns, field.columns)
                    assert other.attributes.keys() == field.attributes.keys()
                    pion = io.contract.correlators(field.propagator(), 'pion', origin=prop.origin)['pion']
                    assert np.allclose(pion, prop.correlator('pion')['pion'].values, rtol=1e-8)
            raises(ValueError, lambda: prop.to_scidac(d.path('x.lime'), 'chroma'), 'usqcd')
            noise = q.propagator(quarkd.z4(1, 0), tol=1e-3)
            raises(ValueError, lambda: noise.to_scidac(d.path('x.lime')), '12')
            seq = prop.sequential('gxgt', 4, (0, 1, 0))
            seq.to_hdf5(d.path('seq.h5'))
            assert io.read_field(d.path('seq.h5')).attributes['sequential'] == 'gamma=gxgt,t=4,p=0:1:0,smear=none'
        with open(ours['scidac'], 'r+b') as f:
            f.seek(-4000, os.SEEK_END)
            byte = f.read(1)[0]
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte ^ 1]))
        raises(ValueError, lambda: io.read_field(ours['scidac']), 'checksum')
        os.truncate(ours['usqcd'], 5000)
        raises(ValueError, lambda: io.read_field(ours['usqcd']))
        other = d.path('notes.txt')
        with open(other, 'w') as f:
            f.write('no fields here')
        raises(ValueError, lambda: io.read_field(other), other, 'neither HDF5 nor SciDAC')
        raises(OSError, lambda: io.read_field(d.path('none.lime')))
        assert not [name for name in os.listdir(d.folder.name) if 'x.lime' in name or '.part' in name]


@tap.test
def fields_are_written_for_quarkctl(case):
    b = random_sources(2)
    with case.daemon() as d:
        io.write_fields(d.path('b.h5'), b, basis='degrand-rossi', source='of a test')
        assert d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('x.h5')).code == 0
        x = io.read_field(d.path('x.h5'))
        assert max(case.residual(*pair) for pair in zip(x.field, b)) < 1.01e-10 and x.columns['status'].tolist() == [b'OK'] * 2
        raises(ValueError, lambda: io.write_fields(d.path('c.h5'), b, colour='red'), 'colour')
        raises(ValueError, lambda: io.write_fields(d.path('c.h5'), b.real), 'float64')
        raises(ValueError, x.propagator, '12 columns')
        assert not os.path.exists(d.path('c.h5'))


PROGRAM = '''
import sys
import numpy as np
import quarkd
b = np.load(sys.argv[2])
q = quarkd.connect(sys.argv[1])
futures = q.submit_many(b, detach=300) + [q.submit(b[0], detach=300, parity=None, tol=1e-6)]
print(quarkd.ticket(futures))
'''


@tap.test
def detached_requests_outlive_their_process_and_are_taken_over_once(case):
    b = random_sources(3)
    with case.daemon() as d:
        d.wait_listening()
        np.save(d.path('b.npy'), b)
        done = subprocess.run([sys.executable, '-c', PROGRAM, d.endpoint, d.path('b.npy')], stdout=subprocess.PIPE, check=True, text=True)
        futures = quarkd.attach(done.stdout)
        assert len(futures) == 4
        for f, rhs in zip(futures, [*b, b[0]]):
            assert case.residual(f.result(30), rhs) < 1.01e-6
        assert case.residual(futures[1].result(), b[1]) < 1.01e-10
        raises(quarkd.RequestError, lambda: quarkd.attach(done.stdout))  # all was fetched
        write_sources(d.path('b.h5'), b)
        assert d.ctl('solve', '--in', d.path('b.h5'), '--out', d.path('x.h5'), '--detach').code == 0
        futures = quarkd.attach(d.path('x.h5.ticket'))
        assert max(case.residual(f.result(30), rhs) for f, rhs in zip(futures, b)) < 1.01e-10
        with quarkd.connect(d.endpoint) as q:
            raises(ValueError, lambda: quarkd.ticket([q.submit(b[0])]), 'detach')
            f = q.submit(b[0], detach=300)
            f.cancel()
            assert f.info().status in ('CANCELLED', 'OK')
            f._request.release()
            left = json.loads(done.stdout)
        for bad in '{', '{}', '[1]', json.dumps({**left, 'client': 'ab'}), json.dumps({**left, 'requests': []}), \
                json.dumps({**left, 'requests': [{'request': 1, 'nrhs': -1}]}):
            raises((ValueError, OSError), lambda bad=bad: quarkd.attach(bad))


def correlators(values, config):
    """One set with a channel [1 momentum, t]."""
    return quarkd.Correlators({'pion': quarkd.Correlator('pion', np.asarray(values, complex)[None], ((0, 0, 0),), 'cosh')}, {'config': config})


@tap.test
def ensembles_have_the_errors_of_their_definition(_):
    rng = np.random.default_rng(2)
    t = np.arange(8)
    values = np.cosh(0.4 * (t - 4)) * (1 + 0.01 * rng.normal(size=(10, 8)))
    two = quarkd.Ensemble([correlators(v, 'c%d' % (i // 2)) for i, v in enumerate(values)])  # two sources a configuration
    samples = values.reshape(5, 2, 8).mean(1)
    assert two.configurations == ['c%d' % i for i in range(5)] and np.allclose(two['pion'][:, 0], samples)
    mean, error = two.jackknife('pion')
    assert np.allclose(mean[0], samples.mean(0)) and np.allclose(error[0], samples.std(0, ddof=1) / np.sqrt(5))
    mass, error = two.meff('pion')
    left = np.array([quarkd.contract.meff(np.delete(samples, i, 0).mean(0)) for i in range(5)])
    assert np.allclose(error[0, :3], np.sqrt(4 / 5 * ((left - left.mean(0)) ** 2).sum(0))[:3]) and abs(mass[0, 1] - 0.4) < 0.1
    raises(ValueError, lambda: quarkd.Ensemble([]))
    raises(ValueError, lambda: quarkd.Ensemble([correlators(values[0], 'a'), correlators(values[1][:4], 'b')]), 'times')


def stand_in(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    return module


@tap.test
def gvar_and_pyerrors_get_all_samples_or_say_that_they_are_not_there(_):
    rng = np.random.default_rng(3)
    e = quarkd.Ensemble([correlators(v, 'c%d' % i) for i, v in enumerate(rng.normal(size=(6, 4)) + 5)])
    for name, call in ('gvar', e.to_gvar), ('pyerrors', lambda: e.to_pyerrors('A654')):
        if not importlib.util.find_spec(name):
            raises(ImportError, call, name + ', which is not installed')
    raises(ValueError if importlib.util.find_spec('pyerrors') else (ImportError, ValueError), lambda: e.to_pyerrors('A654', [1, 2]))
    # By their documentation: gvar.dataset.avg_data({key: samples}); pyerrors.Obs([samples], [ensemble], idl=[numbers]), pyerrors.Corr([Obs, ...]).
    kept = {name: sys.modules.get(name) for name in ('gvar', 'pyerrors')}
    try:
        sys.modules['gvar'] = stand_in('gvar', dataset=stand_in('dataset', avg_data=lambda data: {k: (v.mean(0), v.shape) for k, v in data.items()}))
        mean, shape = e.to_gvar()['pion']
        assert shape == (6, 1, 4) and np.allclose(mean, e['pion'].mean(0))
        sys.modules['pyerrors'] = stand_in('pyerrors', Obs=lambda samples, names, idl: (samples[0], names, idl), Corr=list)
        raises(ValueError, lambda: e.to_pyerrors('A654', [1, 2]), '6 numbers')
        raises(ValueError, lambda: e.to_pyerrors('A654', [1, 2, 3, 5, 4, 6]), 'grow')
        corr, = e.to_pyerrors('A654', range(10, 70, 10))['pion']
        assert len(corr) == 4 and np.array_equal(corr[2][0], e['pion'][:, 0, 2]) and corr[2][1:] == (['A654'], [[10, 20, 30, 40, 50, 60]])
    finally:
        for name, module in kept.items():
            sys.modules.pop(name)
            if module:
                sys.modules[name] = module


tap.run(Case(*sys.argv[1:]))
