"""quarkctl's correlators and sources, with the real daemon: test_correlator_cli.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE

Correlators are judged by the oracle's contractions of propagators that were downloaded; sources by the operator and the
smearing of the oracle.
"""
import os
import re
import signal
import sys

from cli_case import (AGAIN, DATA, DIMS, GAUGE, KAPPA, CSW, SHAPE, USAGE, Case, h5py, np, read_field, ref, tap)
import contract_ref
import smear_ref
from daemon import LIMIT, Daemon

NT = DIMS[3]
MESONS = {'pion': [15], 'a4': [7], 'a0': [0], 'rho': [1, 2, 4], 'rho_t': [9, 10, 12], 'a1': [14, 13, 11], 'b1': [3, 5, 6]}


# ---- the oracle -----------------------------------------------------------------------------------


def propagator(path):
    """[t,z,y,x, spin,colour, source spin,source colour]"""
    return np.moveaxis(read_field(path), 0, -1).reshape(SHAPE + (4, 3))


def bar_sign(g):
    """s of gt G^+ gt = s G"""
    bar = ref.GAMMA[3] @ g.conj().T @ ref.GAMMA[3]
    sign = 1 if np.allclose(bar, g) else -1
    assert np.allclose(bar, sign * g)
    return sign


def both_ways(matrix, parity, t0):
    """+-1/2 {tr P+- N(t) + tr P-+ N(-t)} of [momentum][t][4][4] as contract_ref has it, which knows no boundary."""
    ahead, behind = ((np.eye(4) + s * ref.GAMMA[3]) / 2 for s in (parity, -parity))
    line = np.array(matrix)
    line[:, NT - t0:] *= -1  # three antiperiodic quarks across the edge
    back = -line[:, (NT - np.arange(NT)) % NT]
    back[:, 0] = line[:, 0]
    return parity * (np.einsum('ij,ptji->pt', ahead, line) + np.einsum('ij,ptji->pt', behind, back)) / 2


def expected(s, momenta, origin):
    """All named channels of one propagator: name -> [momentum][t]."""
    pairs = contract_ref.mesons(s, s, momenta, origin)
    out = {}
    for name, gammas in MESONS.items():
        out[name] = -np.mean([bar_sign(contract_ref.gamma(g)) * pairs[:, :, g, g] for g in gammas], axis=0)
    n = contract_ref.nucleon(s, s.copy(), momenta, origin)
    out['nucleon'], out['nucleon_minus'] = (both_ways(n, parity, origin[3]) for parity in (1, -1))
    g = np.array(ref.GAMMA[:3])
    half = np.einsum('iab,jbc->ijac', g, g) / 3
    p = np.einsum('ij,ab->ijab', np.eye(3), np.eye(4)) - half
    out['delta'] = both_ways(np.einsum('ijab,ptjibc->ptac', p, contract_ref.delta(s, momenta, origin)), 1, origin[3])
    out['g5-gxgygz'], out['id-gx'] = pairs[:, :, 15, 7], pairs[:, :, 0, 1]
    return out


def read_piece(path):
    with h5py.File(path, 'r') as f:
        config, = f
        quark, = f[config]
        label, = f[config][quark]
        piece = f[config][quark][label]
        return (config, quark, label), {k: v[...] for k, v in piece.items()}, dict(piece.attrs)


def gauss(links, psi, alpha, steps):
    for _ in range(steps):
        psi = smear_ref.gauss(links, psi, alpha)
    return psi


# ---- correlators ----------------------------------------------------------------------------------


@tap.test
def every_channel_is_the_contraction_of_the_propagator(case):
    origin, momenta = (1, 2, 3, 5), [(0, 0, 0), (1, 0, -1)]
    with case.daemon() as d:
        prop, corr = d.path('prop.h5'), d.path('corr.h5')
        assert d.ctl('propagator', '--source=point:1,2,3,5', '--tol=1e-12', '--out', prop).code == 0
        done = d.ctl('correlator', '--source=point:1,2,3,5', '--tol=1e-12', '--channels=all,g5-gxgygz,0-1',
                     '--momenta=0,0,0;1,0,-1', '--out', corr, '--json')
        assert done.code == 0, done
        _, found, attributes = read_piece(corr)
        want = expected(propagator(prop), momenta, origin)
        assert (found.pop('momenta') == momenta).all()
        assert attributes['channels'].split() == list(want) and set(found) == set(want)
        for name, c in want.items():
            assert np.abs(found[name] - c).max() < 1e-9 * np.abs(c).max(), name
        piece, = done.json['pieces']
        for entry in piece['correlators']:
            c = found[entry['channel']][momenta.index(tuple(entry['p']))]
            assert entry['re'] == list(c.real) and entry['im'] == list(c.imag)
        counters = d.ctl('status', '--json').json['counters']
        assert counters['kept'] == 0 and counters['requests'] == 0 and counters['contracted'] == 1, counters


@tap.test
def named_channels_are_positive_and_fall_from_the_source(case):
    with case.daemon() as d:
        corr = d.path('corr.h5')
        assert d.ctl('correlator', '--source=point:0,0,0,2', '--channels=pion rho nucleon delta', '--out', corr).code == 0
        found = read_piece(corr)[1]
        for name in ('pion', 'rho', 'nucleon', 'delta'):
            c = found[name][0].real
            assert (c[:4] > 0).all() and c[0] > c[1] > c[2] > c[3], (name, c)


@tap.test
def smeared_sources_and_sinks_are_those_of_the_oracle(case):
    links = case.links
    for _ in range(3):
        links = smear_ref.ape(links, 0.5, False)
    with case.daemon() as d:
        smear = ('--smear=gauss:0.3,4', '--smear-links=ape:0.5,3', '--tol=1e-12')
        prop, corr = d.path('prop.h5'), d.path('corr.h5')
        assert d.ctl('propagator', '--source=point:1,0,2,3', *smear, '--out', prop).code == 0
        x = read_field(prop)
        for column in (0, 7):
            b = gauss(links, ref.point_source(case.op, column // 3, column % 3, (3, 2, 0, 1)), 0.3, 4)
            assert case.residual(x[column], b) < 1e-11, column
        done = d.ctl('correlator', '--source=point:1,0,2,3', *smear, '--smear-sink=gauss:width=1.5,steps=6',
                     '--channels=pion,rho,nucleon', '--out', corr)
        assert done.code == 0, done
        _, found, attributes = read_piece(corr)
        a = 1.5**2 / 24
        sunk = np.array([gauss(links, column, a / (1 - 6 * a), 6) for column in x])
        want = expected(np.moveaxis(sunk, 0, -1).reshape(SHAPE + (4, 3)), [(0, 0, 0)], (1, 0, 2, 3))
        for name in ('pion', 'rho', 'nucleon'):
            assert np.abs(found[name] - want[name]).max() < 1e-9 * np.abs(want[name]).max(), name
        assert (attributes['smear'], attributes['links']) == ('gauss:0.3,4', 'ape:0.5,3'), attributes
        assert re.match(r'gauss:0\.21428\d+,6$', attributes['sink']), attributes
        with h5py.File(prop, 'r') as f:
            assert (f.attrs['smear'], f.attrs['links']) == ('gauss:0.3,4', 'ape:0.5,3')


@tap.test
def baryons_of_an_open_boundary_are_refused(case):
    with Daemon(case.quarkd, case.quarkctl, '--gauge=' + GAUGE, '--action=exp-clover', '--kappa=%r' % KAPPA, '--csw=%r' % CSW,
                '--set=open=1') as d:
        asked = 'correlator', '--source=point:0,0,0,3', '--out=' + d.path('corr.h5')
        done = d.ctl(*asked, '--channels=pion,nucleon')
        assert done.code == DATA and 'not with an open boundary (open=1)' in done.err, done
        done = d.ctl(*asked, '--channels=pion,rho', '--json')
        assert done.code == 0, done
        for c in done.json['pieces'][0]['correlators']:
            outer = c['re'][NT - 4], c['re'][NT - 3]
            assert outer == (0, 0) and c['re'][0] > 0, c


@tap.test
def single_precision_propagators_give_single_precision_correlators(case):
    with case.daemon() as d:
        args = ('correlator', '--source=wall:6', '--channels=pion,nucleon', '--tol=1e-10', '--out')
        assert d.ctl(*args, d.path('d.h5')).code == 0 and d.ctl(*args, d.path('s.h5'), '--dtype=f32').code == 0
        a, b = read_piece(d.path('d.h5'))[1], read_piece(d.path('s.h5'))[1]
        for name in ('pion', 'nucleon'):
            difference = np.abs(a[name] - b[name]).max() / np.abs(a[name]).max()
            assert 0 < difference < 1e-5, (name, difference)


@tap.test
def files_of_correlators_describe_themselves(case):
    with case.daemon() as d:
        corr = d.path('corr.h5')
        assert d.ctl('correlator', '--source=point:3,2,1,4', '--channels=pion', '--tol=1e-9', '--out', corr).code == 0
        setup = d.ctl('status', '--json').json['setup']
        names, found, a = read_piece(corr)
        assert names == (GAUGE, 'kappa=0.12', 'point:3,2,1,4')
        assert found['pion'].dtype == np.complex128 and found['pion'].shape == (1, NT)
        assert list(a['origin']) == [3, 2, 1, 4] and list(a['dims']) == DIMS
        assert (a['source'], a['smear'], a['sink'], a['links']) == ('point:3,2,1,4', 'none', 'none', 'none')
        assert abs(a['kappa'] - KAPPA) < 1e-15 and a['csw'] == CSW and list(a['boundary']) == [1, 0, 1, 0, 1, 0, -1, 0]
        assert (a['gauge'], a['digest'], a['plaquette']) == (GAUGE, setup['digest'], setup['plaquette'])
        assert 0 < a['residual'] <= 1e-9 == a['tolerance'] and a['iterations'] > 0 and a['seconds'] > 0
        with h5py.File(corr, 'r') as f:
            assert (f.attrs['format'], f.attrs['format_version']) == ('quarkd correlators', 1)


@tap.test
def correlators_are_printed_and_drawn_when_made_and_from_their_file(case):
    with case.daemon() as d:
        corr, png = d.path('corr.h5'), d.path('c.png')
        made = d.ctl('correlator', '--source=wall:0', '--channels=pion,nucleon', '--momenta=0,0,0 0,0,1', '--tol=1e-6',
                     '--out', corr, '--plot', png)
        assert made.code == 0, made
        rows = re.findall(r'^ +(\d+) +(\S+) +(\S+) +(\S+)$', made.out, re.MULTILINE)
        assert [int(r[0]) for r in rows] == 4 * list(range(NT)), made
        _, found, _ = read_piece(corr)
        printed = np.array([float(r[1]) + 1j * float(r[2]) for r in rows]).reshape(2, 2, NT)
        assert np.allclose(printed, [found['pion'], found['nucleon']], rtol=1e-14, atol=0)
        pion, nucleon = found['pion'][0].real, found['nucleon'][0].real
        for t in range(NT // 2 - 1):
            cosh, log = float(rows[t][3]), float(rows[2 * NT + t][3])
            assert abs(np.cosh(cosh * (t - NT / 2)) / np.cosh(cosh * (t + 1 - NT / 2)) / (pion[t] / pion[t + 1]) - 1) < 1e-6
            assert abs(log - np.log(nucleon[t] / nucleon[t + 1])) < 1e-7
        shown = case.ctl('correlator', corr, '--plot')
        assert shown.code == 0 and made.out.splitlines()[:12] == shown.out.splitlines()[:12]
        assert shown.out.count('logarithmic') == 4
        chosen = case.ctl('correlator', corr, '--channels=pion')
        assert chosen.code == USAGE and 'corr.h5' in chosen.err, chosen
        assert case.ctl('correlator', corr, '--json').json['pieces'][0]['label'] == 'wall:0'
        if 'gnuplot' not in made.err:
            with open(png, 'rb') as f:
                assert f.read(8) == b'\x89PNG\r\n\x1a\n'


# ---- sources --------------------------------------------------------------------------------------


@tap.test
def diluted_noise_adds_up_to_the_whole(case):
    with case.daemon('--slots=8') as d:
        def sources(text):
            out = d.path('p.h5')
            assert d.ctl('propagator', '--source=' + text, '--tol=1e-11', '--dtype=f64', '--out', out).code == 0
            with h5py.File(out, 'r') as f:
                return np.array([case.op.apply(x) for x in f['field'][...]]), f['columns'][...]
        whole, _ = sources('z4:5')
        parts, columns = sources('z4:5,dilute=spin+time,every=2')
        assert len(parts) == 8 and np.abs(parts.sum(axis=0) - whole[0]).max() < 1e-8
        for b, c in zip(parts, columns):
            rest = np.array(b)
            rest[c['site'][3]::2, ..., c['spin'], :] = 0
            assert np.abs(rest).max() < 1e-8 and c['every'] == 2 and np.abs(b).max() > 0.5
        phased, columns = sources('z4:5,t=3,p=1:0:2')
        x = np.indices(SHAPE[:4])
        phase = np.exp(2j * np.pi * (x[3] / DIMS[0] + 2 * x[1] / DIMS[2]))[..., None, None]
        assert np.abs(phased[0][3] - (phase * whole[0])[3]).max() < 1e-8 and list(columns[0]['momentum']) == [1, 0, 2]


@tap.test
def sequential_propagators_go_through_the_first(case):
    with case.daemon() as d:
        first, second = d.path('first.h5'), d.path('second.h5')
        assert d.ctl('propagator', '--source=point:1,1,0,2', '--tol=1e-12', '--out', first).code == 0
        done = d.ctl('sequential', '--source=point:1,1,0,2', '--gamma=gxgt', '--sink-time=6', '--sink-momentum=0,1,0',
                     '--smear-sink=gauss:0.2,2', '--tol=1e-12', '--out', second, '--json')
        assert done.code == 0 and len(done.json['rhs']) == 12, done
        x, y = read_field(first), read_field(second)
        phase = np.exp(2j * np.pi * np.indices(SHAPE[:4])[2] / DIMS[1])[..., None, None]
        for i in (0, 5, 11):
            b = np.zeros_like(x[i])
            b[6] = (phase * np.einsum('ij,...jc->...ic', contract_ref.gamma(9), x[i]))[6]
            assert case.residual(y[i], gauss(case.links, b, 0.2, 2)) < 1e-10, i
        with h5py.File(second, 'r') as f:
            assert f.attrs['source'] == 'point:1,1,0,2'
            assert f.attrs['sequential'] == 'gamma=gxgt,t=6,p=0:1:0,smear=gauss:0.2,2', f.attrs['sequential']
            assert set(f['columns']['gamma']) == {9} and set(f['columns']['source']) == {b'sequential'}
        assert d.ctl('status', '--json').json['counters']['kept'] == 0


# ---- what does not go well ------------------------------------------------------------------------


@tap.test
def wrong_usage_names_the_word(case):
    out = ('--out=c.h5',)
    for args, word in ((('--source=z4:1',) + out, 'z4:1'), (('--source=point:0,0,0,0',), '--out'),
                       (('--source=wall:0', '--channels=pionn') + out, 'pionn'),
                       (('--source=wall:0', '--momenta=1,2') + out, '1,2'),
                       (('--source=wall:0', '--smear=gauss:1') + out, 'gauss:1'),
                       (('--source=wall:0', '--smear-links=ape:0.5,3') + out, '--smear-links'),
                       (('--source=wall:0', '--smear=gauss:1,2', '--smear-links=ape:3,1') + out, 'ape:3,1'),
                       (('--source=wall:0', '--basis=ukqcd') + out, '--basis'), (('--source=wall:0', 'f.h5') + out, 'not both'),
                       (('f.h5', 'g.h5'), '"g.h5"'), ((), '--source is required'),
                       (('--channels=rho', 'f.h5'), 'rho'), (('f.h5',) + out, '--out')):
        done = case.ctl('correlator', *args)
        assert done.code == USAGE and word in done.err and done.out == '', (args, done)
    for args, word in ((('--gamma=g6',), 'g6'), (('--sink-time=-1',), '-1'), ((), '--sink-time'),
                       (('--sink-time=1', '--sink-momentum=1,0,0;0,0,0'), 'one momentum')):
        done = case.ctl('sequential', '--source=wall:0', *args, *out)
        assert done.code == USAGE and word in done.err, (args, done)


@tap.test
def a_missed_tolerance_leaves_no_file(case):
    with case.daemon() as d:
        corr = d.path('corr.h5')
        done = d.ctl('correlator', '--source=wall:0', '--max-iter=2', '--out', corr)
        assert done.code == DATA and 'NOT_CONVERGED' in done.err and not os.path.exists(corr), done
        for option, word in (('--momenta=4,0,0', '4'), ('--source=point:0,0,0,8', 't = 8')):
            done = d.ctl('correlator', '--source=wall:0', option, '--out', corr)
            assert done.code in (USAGE, DATA) and word in done.err and not os.path.exists(corr), done
        counters = d.ctl('status', '--json').json['counters']
        assert counters['kept'] == 0 and counters['requests'] == 0, counters


@tap.test
def an_interrupted_correlator_leaves_nothing_behind(case):
    with case.daemon() as d:
        engine = d.ctl('status', '--json').json['engine']['pid']
        os.kill(engine, signal.SIGSTOP)
        process = d.start_ctl('correlator', '--source=wall:0', '--out', d.path('corr.h5'), '--progress')
        assert '0 of 12' in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
        os.kill(engine, signal.SIGCONT)
        assert process.returncode == AGAIN and 'interrupted' in err, err
        assert [n for n in os.listdir(d.folder.name) if n.startswith('corr')] == []
        assert d.ctl('correlator', '--source=wall:0', '--out', d.path('corr.h5')).code == 0


tap.run(Case(*sys.argv[1:]))
