"""Pion correlators of staggered fermions, as MILC and Chroma print them, as a client asks for them: test_daemon_staggered.py QUARKD QUARKCTL

Each has what that code printed, in single precision, and the same numbers in double by an independent implementation in numpy.
C(t) = sum |S|^2 over three columns, S = (2m + D)^-1, antiperiodic in t. Fields are in QK_DATA. `gaussian` is the source of Chroma's tests:
a point at the origin times (1 + w^2 / (4 n) Laplace)^n with w = 2, n = 5.

milc-qcd/milc_qcd 1e11e121, ks_spectrum/test/ks_spectrum_deflate_hisq.2.corrfile.sample-out (links made SU(3));
JeffersonLab/chroma 91c587d8, tests/chroma/hadron_s/propagator/asqtad.out.xml
"""
import os
import sys
import tempfile

import tap
try:
    import h5py
    import numpy as np
    import ref_dirac as ref
    from open_gauge import write_openqcd
except ImportError as missing:
    tap.skip_all('python3-h5py, numpy and scipy are needed: %s' % missing)
from cli_case import write_sources
from daemon import Daemon

DATA = os.environ.get('QK_DATA', '')
POINT, SMEAR = '--source=point:0,0,0,0', '--smear=gauss:width=2.0,steps=5'
WEAK, MILC = 'pyquda_weak_field.lime', 'milc_lat.sample.l8888'
HISQ = dict(
    operator=['--action=hisq', '--set=mass=0.01'], source=[POINT],
    printed=(0.2793146, 0.06301089, 0.01830683, 0.01090211, 0.003832617, 0.01024369, 0.0162311, 0.06151892),
    exact=(0.2793145824227, 0.06301088644659, 0.01830682933429, 0.01090211346857, 0.003832616877743, 0.01024369438525, 0.01623110202605,
           0.06151892332765))
ASQTAD = dict(
    operator=['--action=asqtad', '--set=mass=0.1', '--set=u0=0.95'], source=[POINT, SMEAR],
    printed=(0.0932779397399837, 0.233665706842485, 0.0222774817771299, 0.232412075271587, 0.00398029561743753, 0.232479758934006,
             0.022332592404391, 0.233431455404686),
    exact=(0.0932779643744, 0.233665717264, 0.02227749032511, 0.232412122201, 0.003980296048514, 0.2324797450403, 0.02233257980771,
           0.2334314255402))
# sum |source|^2 on its slice, over three columns
SMEARED = dict(printed=1.65849963588326, exact=1.658499777772)


def found_in(name):
    path = os.path.join(DATA, name)
    if not os.path.exists(path):
        raise tap.Skip('no %s in "%s" (QK_DATA)' % (name, DATA))
    return path


def daemon(quarkd, quarkctl, gauge, case):
    return Daemon(quarkd, quarkctl, '--gauge=' + gauge, '--slots=3', '--solver=cg', *case['operator'])


def correlator(d, *options):
    done = d.ctl('correlator', '--tol=1e-13', '--out=' + d.path('corr.h5'), '--json', *options)
    assert done.code == 0, done
    piece, = done.json['pieces']
    return {c['channel']: np.array(c['re']) for c in piece['correlators']}


def check(d, case, *options):
    c = correlator(d, '--channels=pion', '--normalisation=twice', *case['source'], *options)['pion']
    printed, exact = (np.max(np.abs(c / np.array(case[k]) - 1)) for k in ('printed', 'exact'))
    print('# off by %.1e from what was printed, by %.1e from numbers in double' % (printed, exact))
    assert printed < 1e-6 and exact < 1e-9, c


@tap.test
def the_hisq_pion_is_that_of_milc(quarkd, quarkctl):
    links = ref.reunitarise(ref.load_any(found_in(MILC))[0])
    with tempfile.TemporaryDirectory() as folder:
        gauge = os.path.join(folder, 'links')
        write_openqcd(gauge, links)
        with daemon(quarkd, quarkctl, gauge, HISQ) as d:
            check(d, HISQ)


@tap.test
def the_asqtad_pion_is_that_of_chroma(quarkd, quarkctl):
    with daemon(quarkd, quarkctl, found_in(WEAK), ASQTAD) as d:
        check(d, ASQTAD)


@tap.test
def the_gaussian_source_of_three_columns_is_that_of_chroma(quarkd, quarkctl):
    with daemon(quarkd, quarkctl, found_in(WEAK), ASQTAD) as d:
        points = np.zeros((3, 8, 4, 4, 4, 3), complex)
        for colour in range(3):
            points[colour, 0, 0, 0, 0, colour] = 1
        write_sources(d.path('points.h5'), points, site_reals=6)
        done = d.ctl('apply', '--in=' + d.path('points.h5'), '--work=smear', SMEAR, '--out=' + d.path('smeared.h5'))
        assert done.code == 0, done
        with h5py.File(d.path('smeared.h5')) as f:
            smeared = f['field'][...]
    norm = (np.abs(smeared[:, 0]) ** 2).sum()
    print('# %.15g' % norm)
    assert not smeared[:, 1:].any()
    assert abs(norm / SMEARED['printed'] - 1) < 1e-6 and abs(norm / SMEARED['exact'] - 1) < 1e-12, norm


tap.run(*sys.argv[1:])
