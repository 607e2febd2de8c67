"""Pion correlators of fermion actions, as other codes print them, through the daemon: test_daemon_actions.py QUARKD QUARKCTL

Each case has what that code printed, if there is one, which is good to its tolerance, and the same numbers in double precision by an
independent implementation in numpy, which quarkd meets to 1e-9. C(t) = sum |S|^2 over 12 columns; G is the source of Chroma's tests, a
point at the origin times (1 + w^2 / (4 n) Laplace)^n with w = 2, n = 5. Fields are in QK_DATA.

The two flavours of twisted mass have the same |S|^2 only in the mean over configurations, as S_-(x,0)^+ = g5 S_+(0,x) g5: on one
they agree in many digits, and differ in those after. `other` is the opposite flavour from the same setup.
"""
import os
import sys

import tap
try:
    import numpy as np
except ImportError as missing:
    tap.skip_all('numpy is needed: %s' % missing)
from daemon import Daemon

DATA = os.environ.get('QK_DATA', '')
G, AT_3 = (('--source=point:0,0,0,%d' % t, '--smear=gauss:width=2.0,steps=5') for t in (0, 3))
# JeffersonLab/chroma 91c587d8, tests/chroma/hadron/propagator
CASES = {
    'anisotropic Wilson: unprec_wilson.out.xml': dict(
        field='pyquda_weak_field.lime', source=G, tolerance=2e-6,
        operator=['--action=anisotropic-clover', '--kappa=0.135', '--set=xi0=2.464', '--set=nu=0.95', '--set=c-r=0', '--set=c-t=0'],
        printed=(0.749881730553737, 0.127559076853271, 0.04881814265712, 0.0261706826618611, 0.0205313170902754,
                 0.0261869580980649, 0.0488589227626557, 0.127618656764825),
        exact=(0.7498817426173, 0.1275590959906, 0.04881816218516, 0.02617069901203, 0.0205313324674, 0.02618697458872,
               0.04885894306686, 0.127618678556)),
    'anisotropic clover: unprec_clover.out.xml': dict(
        field='pyquda_weak_field.lime', source=G, tolerance=2e-6,
        operator=['--action=anisotropic-clover', '--kappa=0.115', '--set=xi0=2.464', '--set=nu=0.95', '--set=c-r=0.91', '--set=c-t=1.07'],
        printed=(0.58873433283675, 0.0440054624250223, 0.0154934270014126, 0.00913658337013499, 0.00757904353447191,
                 0.00913718634621325, 0.0155014543554375, 0.0440099930215391),
        exact=(0.5887343582836, 0.04400546172726, 0.01549342408622, 0.009136579692407, 0.007579039668775, 0.009137182235422,
               0.01550145055103, 0.04400999036705)),
    'exponential clover': dict(
        field='pyquda_weak_field.lime', source=G, operator=['--action=exp-clover', '--kappa=0.115', '--set=csw=1.4'],
        exact=(0.2111377935717, 0.02466265556072, 0.01308734140357, 0.008220833349465, 0.006802673858979, 0.008217425367224,
               0.0130844328301, 0.0246443467903)),
    'clover with an open boundary': dict(
        field='pyquda_weak_field.lime', source=AT_3, operator=['--action=wilson-clover', '--kappa=0.115', '--set=csw=1.4', '--set=open=0.9'],
        exact=(0.2243827854375, 0.02762439251344, 0.0139957980624, 0.008664391792585, 0, 0, 0.01634305962496, 0.0276368871868)),
    'exponential clover with an open boundary': dict(
        field='pyquda_weak_field.lime', source=AT_3, operator=['--action=exp-clover', '--kappa=0.115', '--set=csw=1.4', '--set=open=0.9'],
        exact=(0.2243034705473, 0.02759066353132, 0.01396903717, 0.008641283615278, 0, 0, 0.01631024403888, 0.02760284357815)),
    'twisted mass: prec_parwilson.out.xml': dict(
        field='pyquda_weak_field.lime', source=G, tolerance=3e-6,
        operator=['--action=twisted-clover', '--kappa=0.205', '--set=mu=0.01', '--solver=cg'],
        printed=(0.240750708407748, 0.0924521379717651, 0.0263446081626488, 0.00841285501062902, 0.00460240144675925,
                 0.00841235905947049, 0.026282941570381, 0.0924746705481609),
        exact=(0.2407507229261, 0.09245214540284, 0.02634462037864, 0.008412862364675, 0.004602406742812, 0.008412366747346,
               0.02628295448179, 0.09247467857489),
        other=(0.2407507344791, 0.09245214785652, 0.02634462007982, 0.008412864179542, 0.004602407551676, 0.008412366548804,
               0.02628294979384, 0.09247466712975)),
    # AG-Philipsen/cl2qcd 8657ff5b, executables/tests/inverter_test_ref3. The sign of its mu is the other one: what it prints
    # is flavour -1, to 13 digits. Periodic in time; over the volume of space.
    'twisted mass, heavy: inverter_test_ref3': dict(
        field='cl2qcd_conf.00200', source=('--source=point:0,0,0,0', '--flavour=-1'), tolerance=1e-11, scale=64,
        operator=['--action=twisted-clover', '--kappa=0.15', '--set=mu=4', '--boundary=periodic'],
        printed=(0.00639838341066878, 0.000118922612884654, 2.48500477806187e-06, 0.00011875821479022),
        exact=(0.006398383410669, 0.0001189226128847, 2.48500477806e-06, 0.0001187582147902),
        other=(0.006398384949284, 0.0001189298293371, 2.484453837592e-06, 0.0001187500106631)),
}


def opposite(source):
    """The same for the other flavour."""
    return [o for o in source if o != '--flavour=-1'] if '--flavour=-1' in source else [*source, '--flavour=-1']


def pions(quarkd, quarkctl, case):
    """C(t), and where the case has it that of the other flavour from the same setup."""
    with Daemon(quarkd, quarkctl, '--gauge=' + os.path.join(DATA, case['field']), '--slots=12', *case['operator']) as d:
        for source in [case['source']] + ([opposite(case['source'])] if 'other' in case else []):
            done = d.ctl('correlator', '--tol=1e-13', '--channels=pion', '--out=' + d.path('corr.h5'), '--json', *source)
            assert done.code == 0, done
            piece, = done.json['pieces']
            correlator, = piece['correlators']
            yield np.array(correlator['re']) / case.get('scale', 1)


def off(found, numbers):
    """The largest relative error; what must be 0 is."""
    numbers = np.array(numbers)
    assert not found[numbers == 0].any(), found
    there = numbers != 0
    return np.max(np.abs(found[there] / numbers[there] - 1))


def add_test(name, case):
    def body(quarkd, quarkctl):
        if not os.path.exists(os.path.join(DATA, case['field'])):
            raise tap.Skip('no %s in "%s" (QK_DATA)' % (case['field'], DATA))
        found, *others = pions(quarkd, quarkctl, case)
        exact = off(found, case['exact'])
        print('# off by %.1e from numbers in double' % exact)
        assert exact < 1e-9, found
        if 'printed' in case:
            printed = off(found, case['printed'])
            print('# off by %.1e from what was printed' % printed)
            assert printed < case['tolerance'], found
        for other in others:
            exact, apart, expected = off(other, case['other']), off(other, found), off(np.array(case['other']), case['exact'])
            print('# the other flavour is off by %.1e from numbers in double; the two are %.3e apart' % (exact, apart))
            assert exact < 1e-9 and abs(apart / expected - 1) < 1e-2, other
    body.__name__ = name
    tap.test(body)


for NAME, CASE in CASES.items():
    add_test(NAME, CASE)
tap.run(*sys.argv[1:])
