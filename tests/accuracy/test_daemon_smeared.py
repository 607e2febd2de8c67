"""Smeared sources and contracted correlators through the daemon: test_daemon_smeared.py QUARKD QUARKCTL

Against the propagators that Chroma stored (QK_DATA), against definitions written out in numpy, and by moving the lattice.
"""
import json
import os
import sys

import tap
try:
    import h5py
    import numpy as np
    import contract_ref as contract
    import ref_dirac as ref
    import smear_ref
except ImportError as missing:
    tap.skip_all('python3-h5py, numpy and scipy are needed: %s' % missing)
from daemon import Daemon

DATA = os.environ.get('QK_DATA', '')
LINKS, CHROMA = (os.path.join(DATA, n) for n in ('pyquda_weak_field.lime', 'lalibe_test_propagator_t4.h5'))
PUBLISHED = os.path.join(DATA, 'published.json')
if not all(os.path.exists(f) for f in (LINKS, CHROMA, PUBLISHED)):
    tap.skip_all('no Chroma propagators in "%s" (QK_DATA)' % DATA)
CSW, TOLERANCE = 1.17, 1e-13


def daemon(quarkd, quarkctl, gauge, mass, csw):
    return Daemon(quarkd, quarkctl, '--gauge=' + gauge, '--mass=%.17g' % mass, '--csw=%.17g' % csw, '--slots=12')


def propagator(d, *options):
    """S[t,z,y,x, s,c, s',c']"""
    path = d.path('prop.h5')
    done = d.ctl('propagator', '--tol=%g' % TOLERANCE, '--out=' + path, *options)
    assert done.code == 0, done
    with h5py.File(path) as f:
        s = f['field'][...]
    return np.moveaxis(s.reshape((4, 3) + s.shape[1:]), (0, 1), (-2, -1))


def correlators(d, *options):
    """{(channel, momentum): C(t)} and the raw answer."""
    done = d.ctl('correlator', '--tol=%g' % TOLERANCE, '--out=' + d.path('corr.h5'), '--json', *options)
    assert done.code == 0, done
    piece, = done.json['pieces']
    return {(c['channel'], tuple(c['p'])): np.array(c['re']) + 1j * np.array(c['im']) for c in piece['correlators']}


def distance(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


def chroma(name):
    """S in the order of propagator(): the file has [t,z,y,x, s,s', c,c']."""
    with h5py.File(CHROMA) as f:
        s = f['sh_sig2p0_n5/' + name][...]
    return np.moveaxis(s, 5, 6)


def check_chroma(quarkd, quarkctl, name):
    with open(PUBLISHED) as file:
        entry = json.load(file)['pyquda_weak_field.lime + lalibe_test_propagator_t4.h5'][name]
    source = ['--source=point:0,0,0,4', '--smear=gauss:width=2.0,steps=5']
    with daemon(quarkd, quarkctl, LINKS, entry['mass'], entry['csw']) as d:
        s = propagator(d, *source)
        found = correlators(d, *source)['pion', (0, 0, 0)]
    worst = distance(s, chroma(name))
    pion = np.roll(entry['pion'], -4)
    print('# %s: propagator %.1e, pion %.1e' % (name, worst, distance(found, pion)))
    # theirs solve their equation to 1e-12
    assert worst < 1e-11
    assert np.allclose(found, pion, rtol=1e-10, atol=0), (found, pion)
    operator = ref.WilsonClover(ref.load_any(LINKS)[0], entry['mass'], entry['csw'])
    norms = [np.linalg.norm(operator.apply(np.ascontiguousarray(s[..., k // 3, k % 3]))[4]) for k in range(12)]
    assert np.allclose(norms, entry['norm_MS_on_source_slice_per_spin_colour'], rtol=1e-11, atol=0), norms


@tap.test
def gaussian_sources_are_those_of_chroma_at_mass_0_1(quarkd, quarkctl):
    check_chroma(quarkd, quarkctl, 'PS_up_4')


@tap.test
def gaussian_sources_are_those_of_chroma_at_mass_0_2(quarkd, quarkctl):
    check_chroma(quarkd, quarkctl, 'PS_dn_4')


def projected(matrix, sign):
    """tr[(1 + sign g_t)/2 N]"""
    return np.einsum('ij,...ji->...', (np.eye(4) + sign * contract.GT) / 2, matrix)


@tap.test
def correlators_of_kept_propagators_are_those_of_downloaded_ones(quarkd, quarkctl):
    origin, momenta = (1, 2, 3, 2), [(0, 0, 0), (1, 0, 0), (0, -1, 1)]
    source = ['--source=point:1,2,3,2', '--smear=gauss:0.4,3', '--smear-links=stout:0.1,2']
    with daemon(quarkd, quarkctl, LINKS, 0.15, CSW) as d:
        s = propagator(d, *source)
        found = correlators(d, *source, '--channels=pion,gxgygz-g5,gx-gxgt,nucleon', '--momenta=0,0,0;1,0,0;0,-1,1')
        offline = d.ctl('correlator', d.path('prop.h5'), '--json')
    pion = np.array(offline.json['channels']['pion']['C'])
    assert np.allclose(found['pion', (0, 0, 0)], pion, rtol=1e-11, atol=0), (found['pion', (0, 0, 0)], pion)
    for name, pair in (('pion', (15, 15)), ('gxgygz-g5', (7, 15)), ('gx-gxgt', (1, 9))):
        want = contract.meson(s, s, *pair, momenta, origin)
        for p, c in zip(momenta, want):
            assert np.abs(found[name, p] - c).max() < 1e-11 * np.abs(want).max(), (name, p)
    # flavours are told apart by their objects
    nucleon = contract.nucleon(s, s.copy(), momenta[:1], origin)[0]
    t = np.array([1, 2])  # neither t nor -t is across the edge of the lattice
    want = (projected(nucleon, 1)[t] + projected(nucleon, -1)[-t]) / 2
    assert np.allclose(found['nucleon', (0, 0, 0)][t], want, rtol=1e-9, atol=0), (found['nucleon', (0, 0, 0)], want)


@tap.test
def sinks_are_smeared_like_sources(quarkd, quarkctl):
    source = ['--source=point:0,0,0,0', '--smear=gauss:0.4,3', '--smear-links=ape:0.5,2']
    with daemon(quarkd, quarkctl, LINKS, 0.15, CSW) as d:
        s = propagator(d, *source)
        found = correlators(d, *source, '--smear-sink=gauss:0.3,2')['pion', (0, 0, 0)]
    u = smear_ref.smear_links(ref.load_any(LINKS)[0], 'ape:0.5,2')
    for spin in range(4):
        for colour in range(3):
            s[..., spin, colour] = smear_ref.smear_source(u, s[..., spin, colour], 'gauss:0.3,2')
    want = contract.meson(s, s, 15, 15, [(0, 0, 0)], (0, 0, 0, 0))[0]
    assert np.allclose(found, want, rtol=1e-10, atol=0), (found, want)


def write_nersc(path, u):
    """U[mu,t,z,y,x,a,b] as 4D_SU3_GAUGE_3x3, IEEE64BIG."""
    body = np.ascontiguousarray(np.moveaxis(u, 0, 4)).astype('>c16').tobytes()
    header = {'DATATYPE': '4D_SU3_GAUGE_3x3', 'FLOATING_POINT': 'IEEE64BIG', 'PLAQUETTE': '%.15g' % ref.plaquette(u),
              'LINK_TRACE': '%.15g' % (np.trace(u, axis1=-2, axis2=-1).real.mean() / 3),
              'CHECKSUM': '%x' % (int(np.frombuffer(body, '>u4').astype(np.uint64).sum()) % 2**32)}
    header.update(('DIMENSION_%d' % (i + 1), n) for i, n in enumerate(u.shape[4:0:-1]))
    with open(path, 'wb') as f:
        f.write(('BEGIN_HEADER\n%sEND_HEADER\n' % ''.join('%s = %s\n' % kv for kv in header.items())).encode() + body)


@tap.test
def correlators_do_not_depend_on_where_the_lattice_begins(quarkd, quarkctl):
    options = ['--smear=gauss:0.4,3', '--smear-links=hyp:0.75,0.6,0.3,1', '--smear-sink=gauss:0.2,1',
               '--channels=pion,rho,a4,nucleon,nucleon_minus,delta', '--momenta=0,0,0;1,0,-1']
    move, found = (1, 2, 3, 5), []
    for shift in ((0, 0, 0, 0), move):
        u = ref.load_any(LINKS)[0]
        for mu in range(4):
            u = np.roll(u, shift[mu], axis=1 + ref.AXIS[mu])
        with daemon(quarkd, quarkctl, 'builtin:unit:4x4x4x8', 0.15, CSW) as d:
            moved = d.path('moved.nersc')
            write_nersc(moved, u)
            with daemon(quarkd, quarkctl, moved, 0.15, CSW) as at:
                found.append(correlators(at, '--source=point:%d,%d,%d,%d' % shift, *options))
    assert found[0].keys() == found[1].keys() and len(found[0]) == 12
    for key, c in found[0].items():
        assert distance(found[1][key], c) < 1e-9, (key, c, found[1][key])


tap.run(*sys.argv[1:])
