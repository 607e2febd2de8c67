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
    from front_driver import Client, Daemon as Front, qk
    from open_gauge import write_openqcd
except (ImportError, OSError) as missing:
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
# asqtad, u0 = 0.8696: ks_spectrum/test/ks_spectrum_asqtad.spectrum2.2.corrfile_t0.sample-out of MILC at 70d6d00a
CORNER = {
    '0.03': {'pion5': (52.48037, 48.06830, 21.94402, 30.85750, 11.94095, 29.56071, 17.32393, 44.19166),
             'pion05': (-48.60794, -46.98516, -20.52663, -30.39883, -11.32022, -29.09774, -15.87632, -43.04708),
             'rhox': (38.55764, 89.35586, 12.67975, 49.42165, 5.265213, 52.15844, 11.50132, 81.71110),
             'rhox0': (-31.20113, 88.91151, -10.38666, 49.31826, -4.487549, 51.97107, -9.144138, 81.16018),
             'nucleon': (3.542128e-02 - 4.333742e-04j, 4.200372 + 2.752575e-01j, 5.909885e-03 + 7.151785e-05j, 1.798556 + 3.760432e-02j,
                         3.675029e-05 + 4.618935e-04j, 1.750457 + 1.257205e-02j, -5.556560e-03 + 7.769915e-04j, 3.545304 - 1.937202e-01j)},
    '0.05': {'pion5': (52.97160, 46.52222, 21.22949, 28.56885, 10.97690, 27.37696, 16.94766, 42.95406),
             'pion05': (-43.09012, -43.86650, -17.71987, -27.48896, -9.504091, -26.28945, -13.38369, -40.16174),
             'rhox': (43.03514, 86.74253, 13.74075, 46.23431, 5.401302, 48.62332, 12.52287, 79.64189),
             'rhox0': (-23.97924, 85.61059, -7.948651, 45.97269, -3.505566, 48.16703, -6.609309, 78.25947),
             'nucleon': (1.472634e-01 - 1.678707e-03j, 3.988232 + 2.409105e-01j, 2.375669e-02 + 3.057336e-04j, 1.619128 + 3.105888e-02j,
                         1.608198e-04 + 1.762707e-03j, 1.570316 + 9.248869e-03j, -2.221232e-02 + 3.048228e-03j, 3.384494 - 1.797751e-01j)}}
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
def hadrons_of_a_corner_wall_are_those_of_milc(quarkd, quarkctl):
    """In Coulomb gauge, to which MILC goes until its functional changes by 2e-6; its numbers are those of t counted from 0."""
    links = ref.reunitarise(ref.load_any(found_in(MILC))[0])
    wall = np.zeros((3, 8, 8, 8, 8, 3), complex)
    for colour in range(3):
        wall[colour, 0, ::2, ::2, ::2, colour] = 1
    with tempfile.TemporaryDirectory() as folder:
        gauge = os.path.join(folder, 'links')
        write_openqcd(gauge, links)
        for mass, printed in CORNER.items():
            options = '--action', 'asqtad', '--set', 'u0=0.8696', '--fix-gauge', 'coulomb', '--solver', 'cg', '--slots', '3'
            with Front(quarkd, *options, gauge=gauge, mass=mass) as d, Client(d) as c:
                accepted = c.submit(3, sink=qk.SINK_KEEP, tol=1e-12, normalisation=qk.NORMALISATION_TWICE)
                c.upload(accepted, wall)
                assert all(r.status == 0 for r in c.results(3))
                raw = [qk.Channel(kind=qk.CHANNEL_MESON, sink=n, source=n) for n in (15, 0, 1, 2, 4, 9, 10, 12)] + [qk.Channel(kind=qk.CHANNEL_CORNER)]
                c.contract(accepted.request, channel=raw, origin=[0, 0, 0, 0])
                r = c.expect('result')
                assert r.status == 0, r
                n = c.fetch(r).view(complex).reshape(9, -1)
                found = {'pion5': n[0], 'pion05': n[1], 'rhox': n[2:5].sum(0), 'rhox0': -n[5:8].sum(0), 'nucleon': n[8]}
                for name, values in printed.items():
                    off = np.abs(found[name] - values).max() / np.abs(values).max()
                    print('# %s, mass %s: off by %.1e of the largest number that was printed' % (name, mass, off))
                    assert off < 5e-3, (name, mass, found[name], values)


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
