#!/usr/bin/env python3
"""Links that quarkd brings to a gauge: test_fix_gauge_cli.py QUARKD QUARKCTL QUARK_GAUGE

A wall source means something in one gauge alone: from a configuration and a randomly transformed copy of it
quarkd makes the same pion, if it fixes both, and quark-gauge fix makes the same links.
"""
import os
import subprocess
import sys
import tempfile

import tap
from daemon import Daemon

GAUGE = 'builtin:weak:4x4x4x8:1'
ONE, COPY = 'one.lime', 'copy.lime'


class Case:
    def __init__(self, quarkd, quarkctl, quark_gauge):
        self.quarkd, self.quarkctl, self.quark_gauge = quarkd, quarkctl, quark_gauge
        self.folder = tempfile.TemporaryDirectory()
        self.tool('convert', GAUGE, self.path(ONE))
        # stops at once: what is written is the random start
        self.tool('fix', '--gauge=landau', '--random-start=5', '--max-iter=0', '--partial', self.path(ONE), self.path(COPY), code=65)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def tool(self, *args, code=0):
        done = subprocess.run([self.quark_gauge, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert done.returncode == code, done

    def daemon(self, *args):
        return Daemon(self.quarkd, self.quarkctl, '--gauge=' + self.path(ONE), '--kappa=0.12', '--csw=1', *args)


def pion(case, d, setup):
    out = case.path('pion-%s.h5' % setup)
    done = d.ctl('correlator', '--setup', setup, '--source=wall:0', '--channel=pion', '--tol=1e-12', '--out', out, '--json')
    assert done.code == 0, done
    piece = done.json['pieces'][0]
    return piece['correlators'][0]['re'], piece['digest']


def distance(a, b):
    return max(abs(x - y) / abs(x) for x, y in zip(a, b))


def report(d, setup):
    return d.ctl('status', '--setup', setup, '--json').json['setup']


@tap.test
def a_wall_pion_does_not_depend_on_the_gauge_of_the_file(case):
    with case.daemon('--fix-gauge=coulomb:1e-24') as d:
        for name, more in (('copy', ()), ('as-it-is', ('--fix-gauge=none',)), ('landau', ('--fix-gauge', 'landau:1e-20'))):
            done = d.ctl('load', name, '--gauge', case.path(COPY), *more)
            assert done.code == 0, done
        (first, digest), (second, other), (raw, plain) = (pion(case, d, s) for s in ('main', 'copy', 'as-it-is'))
        assert distance(first, second) < 1e-10, (first, second)
        assert distance(first, raw) > 1e-2, 'the wall would be the same in any gauge'
        assert len({digest, other, plain}) == 3, 'links in another gauge are other links'
        said = [report(d, s) for s in ('main', 'as-it-is', 'landau')]
        assert [s['fix_gauge'] for s in said] == ['coulomb:1e-24', '', 'landau:1e-20'], said
        assert max(abs(s['plaquette'] - said[0]['plaquette']) for s in said) < 1e-12
        assert 'fix' in [part['phase'] for part in said[0]['start']], said[0]['start']
        assert any('Coulomb gauge: theta' in line for line in d.log), d.log
        out = d.ctl('status').out
        assert 'fixed       coulomb:1e-24\n' in out, out


@tap.test
def a_restart_has_the_same_gauge(case):
    with tempfile.TemporaryDirectory() as state:
        for again in False, True:
            with case.daemon('--state=' + state) as d:
                if not again:
                    assert d.ctl('load', 'copy', '--gauge', case.path(COPY), '--fix-gauge=coulomb:1e-18').code == 0
                assert d.ctl('load', 'copy', '--gauge', case.path(COPY), '--fix-gauge=coulomb:1e-18').code == 0, 'it is the same LOAD'
                said = report(d, 'copy')
                assert said['fix_gauge'] == 'coulomb:1e-18', said
                if again:
                    assert said['digest'] == digest, (said, digest)
                digest = said['digest']
                other = d.ctl('load', 'copy', '--gauge', case.path(COPY), '--fix-gauge=coulomb:1e-19')
                assert other.code != 0 and 'copy' in other.err, other


@tap.test
def links_are_those_of_quark_gauge_fix(case):
    case.tool('fix', '--gauge=landau', '--tol=1e-18', '--quiet', case.path(COPY), case.path('fixed.lime'))
    with case.daemon('--fix-gauge=landau:1e-18', '--gauge=' + case.path(COPY)) as d:
        assert d.ctl('load', 'file', '--gauge', case.path('fixed.lime'), '--fix-gauge=none').code == 0
        assert report(d, 'main')['digest'] == report(d, 'file')['digest']


@tap.test
def what_cannot_be_is_refused_by_name(case):
    with case.daemon() as d:
        for text, words in (('coulomb:0', 'THETA must be 1e-26 to 1'), ('axial', 'none, landau[:THETA] or coulomb[:THETA]'),
                            ('landau:', 'THETA must be'), ('none:1', 'none, landau'), ('coulomb:1e-12:1', 'THETA must be'),
                            ('x' * 41, 'of 41 bytes: at most 40')):
            done = d.ctl('load', 'bad', '--gauge', case.path(COPY), '--fix-gauge', text)
            assert done.code == 65 and words in done.err, done
        done = d.ctl('load', 'cut', '--gauge', case.path(COPY), '--action', 'exp-clover', '--set', 'mass=0.2', '--set', 'csw=1', '--set',
                     'open=1', '--fix-gauge', 'landau')
        assert done.code != 0 and 'open boundary' in done.err, done
    refused = subprocess.run([case.quarkd, '--gauge=' + GAUGE, '--kappa=0.12', '--fix-gauge=lorenz'], stderr=subprocess.PIPE, text=True)
    assert refused.returncode == 64 and 'fix-gauge = lorenz' in refused.stderr, refused


tap.run(Case(*sys.argv[1:4]))
