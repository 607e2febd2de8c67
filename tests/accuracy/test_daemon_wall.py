"""What Chroma prints of domain wall fermions, through the daemon: test_daemon_wall.py QUARKD QUARKCTL

JeffersonLab/chroma 91c587d8, tests/chroma/hadron/propagator/prec_dwf.out.xml: Shamir's action on an anisotropic lattice, a Gaussian source.
Printed numbers are good to their tolerance; beside them the same in double precision by an independent implementation in numpy, which
quarkd meets to 1e-9. The field is in QK_DATA.
"""
import os
import sys

import tap
try:
    import h5py
    import numpy as np
except ImportError as missing:
    tap.skip_all('python3-h5py and numpy are needed: %s' % missing)
from daemon import Daemon

FIELD = os.path.join(os.environ.get('QK_DATA', ''), 'pyquda_weak_field.lime')
if not os.path.exists(FIELD):
    tap.skip_all('no %s (QK_DATA)' % FIELD)
ACTION = ['--action=moebius', '--solver=cg', '--slots=12',
          *('--set=' + s for s in ('Ls=4', 'M5=1.2', 'mass=0.4', 'xi0=2.464', 'nu=1.2'))]
SOURCE = ['--source=point:0,0,0,0', '--smear=gauss:width=2.0,steps=5', '--tol=1e-13']
PION = dict(
    printed=(0.046334869623285, 0.0639293924323685, 0.0177903308441096, 0.00806536155861327, 0.0059721249985301, 0.0080644891177445,
             0.0177967872036496, 0.0639287163416963),
    tolerance=1e-6,
    exact=(0.04633487264136, 0.06392940237946, 0.01779033348676, 0.008065363071283, 0.005972126074097, 0.008064489982604, 0.01779678839754,
           0.06392872266874))
MIDPOINT = dict(
    printed=(0.04292382, 0.004030217, 0.0003961284, 4.971103e-05, 7.077304e-06, 4.974484e-05, 0.0003968574, 0.004034408),
    tolerance=1e-5,
    exact=(0.04292382150503, 0.004030217929627, 0.0003961286040235, 4.971107552213e-05, 7.077326720765e-06, 4.974489023229e-05,
           0.0003968575700157, 0.004034409001894))
AXIAL = dict(
    printed=(-0.08317834, -0.02397439, -0.008949869, -0.002398158, 0.002393697, 0.008944778, 0.02397592, 0.08318771),
    tolerance=1e-6,
    exact=(-0.08317835269917, -0.02397439493635, -0.008949870938897, -0.002398158330825, 0.002393697181894, 0.008944778948442,
           0.02397592480651, 0.08318772094528))


def check(found, wanted, scale):
    """scale: what errors are relative to."""
    exact, printed = (np.max(np.abs(found - np.array(wanted[k])) / scale) for k in ('exact', 'printed'))
    print('# off by %.1e from numbers in double, by %.1e from what was printed' % (exact, printed))
    assert exact < 1e-9 and printed < wanted['tolerance'], found


@tap.test
def the_pion_of_shamirs_quarks(quarkd, quarkctl):
    with Daemon(quarkd, quarkctl, '--gauge=' + FIELD, *ACTION) as d:
        done = d.ctl('correlator', *SOURCE, '--channels=pion', '--out=' + d.path('corr.h5'), '--json')
        assert done.code == 0, done
        shown = d.ctl('correlator', d.path('corr.h5'))
        with h5py.File(d.path('corr.h5')) as f:
            group, = (g for quark in f.values() for source in quark.values() for g in source.values())
            stored, t0 = {k: v[...] for k, v in group['wall'].items()}, group['wall'].attrs['t0']
    piece, = done.json['pieces']
    found, = piece['correlators']
    check(np.array(found['re']), PION, np.array(PION['exact']))
    for key, wanted in (('quark', PION), ('midpoint', MIDPOINT), ('axial', AXIAL)):  # beside the correlators, and in their file
        assert np.allclose(piece['wall'][key], wanted['exact'], rtol=1e-9, atol=1e-9 * max(wanted['exact'])), (key, piece['wall'])
        assert np.allclose(stored[key].sum(0), wanted['exact'], rtol=1e-9, atol=1e-9 * max(wanted['exact'])), (key, stored)
    assert t0 == 0 and 'residual mass %.4g' % piece['wall']['plateau']['mean'] in shown.out, shown


@tap.test
def midpoint_and_axial_current_of_shamirs_quarks(quarkd, quarkctl):
    """As quarkctl prints them and as they are in the file; their ratio is the residual mass."""
    exact = {k: np.array(v['exact']) for k, v in (('quark', PION), ('midpoint', MIDPOINT), ('axial', AXIAL))}
    with Daemon(quarkd, quarkctl, '--gauge=' + FIELD, *ACTION) as d:
        done = d.ctl('propagator', *SOURCE, '--out=' + d.path('prop.h5'), '--json')
        assert done.code == 0, done
        text = d.ctl('propagator', *SOURCE, '--out=' + d.path('again.h5'))
        with h5py.File(d.path('prop.h5')) as f:
            stored = {k: v[...] for k, v in f['wall'].items()}
            said = dict(f['wall'].attrs)
    wall = done.json['wall']
    for key, wanted, scale in (('quark', PION, exact['quark']), ('midpoint', MIDPOINT, exact['midpoint']), ('axial', AXIAL, max(AXIAL['exact']))):
        check(np.array(wall[key]), wanted, scale)
        assert stored[key].shape == (12, 8) and np.allclose(stored[key].sum(0), wall[key], rtol=1e-13, atol=1e-18), (key, stored[key])
    ratio = exact['midpoint'] / exact['quark']
    assert np.allclose(wall['ratio'], ratio, rtol=1e-9, atol=0) and np.allclose(stored['residual_mass'], ratio, rtol=1e-9, atol=0), wall
    mean = ratio[2:7].mean()
    p = wall['plateau']
    assert wall['t0'] == said['t0'] == 0 and [p['first'], p['last']] == list(said['plateau']) == [2, 6], (p, said)
    assert abs(p['mean'] / mean - 1) < 1e-9 and said['residual_mass'] == p['mean'] and p['least'] == min(wall['ratio']), (p, said)
    assert 'residual mass %.4g, the mean of R over t = 2 to 6 from the source' % mean in text.out, text


tap.run(*sys.argv[1:])
