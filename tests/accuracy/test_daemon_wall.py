"""What Chroma prints of domain wall fermions, through the daemon: test_daemon_wall.py QUARKD QUARKCTL

JeffersonLab/chroma 91c587d8, tests/chroma/hadron/propagator/prec_dwf.out.xml: Shamir's action on an anisotropic lattice, a Gaussian source.
Printed numbers are good to their tolerance; beside them the same in double precision by an independent implementation in numpy, which
quarkd meets to 1e-9. The field is in QK_DATA.
"""
import os
import sys

import tap
try:
    import numpy as np
except ImportError as missing:
    tap.skip_all('numpy is needed: %s' % missing)
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
    piece, = done.json['pieces']
    found, = piece['correlators']
    check(np.array(found['re']), PION, np.array(PION['exact']))


tap.run(*sys.argv[1:])
