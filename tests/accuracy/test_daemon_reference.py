"""Pion correlators through the daemon: test_daemon_reference.py QUARKD QUARKCTL

For every configuration of reference.json (QK_DATA) and one of its cases in turn, with QK_LARGE all of them, a daemon is
started on the file, the 12 columns of a point source are solved for through the socket, and C(t) is compared at every t.
test_reference.c has all cases without the daemon.
"""
import json
import os
import sys

import tap
from daemon import Daemon

DATA = os.environ.get('QK_DATA', '')
REFERENCE = os.path.join(DATA, 'reference.json')
BOUNDARY = {'antiperiodic in t': '1,1,1,-1', 'periodic': '1,1,1,1'}
TOLERANCE, AGREE = 1e-11, 1e-8
if not os.path.exists(REFERENCE):
    tap.skip_all('no reference.json in "%s" (QK_DATA)' % DATA)


def check(name, dims, plaquette, case, quarkd, quarkctl):
    args = ['--gauge=' + os.path.join(DATA, name), '--dims=%dx%dx%dx%d' % tuple(dims), '--kappa=%.17g' % case['kappa'],
            '--csw=%.17g' % case['csw'], '--boundary=' + BOUNDARY[case['boundary']], '--slots=12']
    with Daemon(quarkd, quarkctl, *args) as d:
        status = d.ctl('status', '--json')
        assert status.code == 0 and status.json['setup']['dims'] == dims, status
        assert abs(status.json['setup']['plaquette'] - plaquette) < 1e-12, status
        done = d.ctl('propagator', '--source=point:0,0,0,0', '--tol', TOLERANCE, '--max-iter=20000', '--out',
                     d.path('prop.h5'), '--json')
        assert done.code == 0, done
        assert len(done.json['rhs']) == 12
        assert all(r['status'] == 'OK' and r['true_residual'] <= TOLERANCE for r in done.json['rhs']), done
        corr = d.ctl('correlator', '--channel=pion', d.path('prop.h5'), '--json')
        assert corr.code == 0 and corr.json['T'] == dims[3], corr
        found = corr.json['channels']['pion']['C']
    assert len(found) == len(case['pion'])
    worst = max(abs(c / want - 1) for c, want in zip(found, case['pion']))
    print('# %s: largest relative difference %.1e' % (name, worst))
    assert worst < AGREE, (found, case['pion'])


def add_test(name, entry, case):
    def body(quarkd, quarkctl):
        check(name, entry['dims_xyzt'], entry['plaquette'], case, quarkd, quarkctl)
    body.__name__ = 'pion of %s, kappa %.6g, csw %g, %s' % (name, case['kappa'], case['csw'], case['boundary'])
    tap.test(body)


with open(REFERENCE) as file:
    for number, (name, entry) in enumerate(json.load(file).items()):
        cases = [case for case in entry.get('cases', []) if 'pion' in case]
        for case in cases if 'QK_LARGE' in os.environ else cases[number % max(len(cases), 1):][:1]:
            add_test(name, entry, case)
tap.run(*sys.argv[1:])
