#!/usr/bin/env python3
"""Masses of pion, rho and nucleon, and the PCAC mass, from a file of correlators of quarkctl workflow; against published
numbers.

    spectrum.py FILE... [--pion FIRST:LAST] [--rho FIRST:LAST] [--nucleon FIRST:LAST] [--pcac FIRST:LAST] [--c-a X]

FILE: channels pion, rho, nucleon and gxgygz-g5 (the axial current in time) at zero momentum. Sources of a configuration are
averaged; configurations are independent samples. Masses are correlated fits
of one state with jackknife errors; windows count time from the source. The PCAC mass is
(d C_AP + c_A d^2 C_PP) / (2 C_PP) with symmetric differences; where it vanishes in kappa is compared with the published
critical kappa, if beta and c_sw are those (published.py). Exit status 1 where anything is more than three combined errors
away.
"""
import argparse
import sys

import h5py
import numpy as np

import fits
import published
import stats

LIMIT = 3.0
CHANNELS = ('pion', 'rho', 'nucleon', 'gxgygz-g5')


class Ensemble:
    """At one kappa: channel[name][configuration, t], real, averaged over sources."""

    def __init__(self, kappa, csw, channel):
        self.kappa, self.csw, self.channel = kappa, csw, channel
        self.extent = channel['pion'].shape[1]


def read(paths):
    """Ensembles by falling quark mass, of the configurations that have the same sources for every quark."""
    pieces = {}
    for path in paths:
        with h5py.File(path) as file:
            for piece in (s for config in file.values() for quark in config.values() for s in quark.values()):
                key = float(piece.attrs['kappa']), float(piece.attrs['csw'])
                links = text_of(piece.attrs['digest'])  # names may be those of another chain
                pieces.setdefault(key, {}).setdefault(links, {})[text_of(piece.attrs['label'])] = [
                    zero_momentum(piece, n) for n in CHANNELS]
    every = set().union(*(configs for configs in pieces.values()))
    complete = [c for c in sorted(every) if len({frozenset(configs.get(c, ())) for configs in pieces.values()}) == 1]
    if len(complete) < len(every):
        print('%d configurations lack a source of some quark and are left out' % (len(every) - len(complete)))
    found = []
    for key in sorted(pieces):
        data = np.array([np.mean(list(pieces[key][c].values()), axis=0) for c in complete])
        found.append(Ensemble(*key, {n: data[:, i] for i, n in enumerate(CHANNELS)}))
    return found


def text_of(attribute):
    return attribute.decode() if isinstance(attribute, bytes) else str(attribute)


def zero_momentum(piece, name):
    at = np.flatnonzero(~piece['momenta'][...].any(axis=1))
    if not len(at):
        raise ValueError('%s has no zero momentum' % piece.name)
    return piece[name][at[0]].real


def pcac(axial, pion, c_a):
    """Mass at every t from C_AP with sink gxgygz = -gt g5 and from C_PP."""
    first = -(np.roll(axial, -1, axis=-1) - np.roll(axial, 1, axis=-1)) / 2
    second = np.roll(pion, -1, axis=-1) - 2 * pion + np.roll(pion, 1, axis=-1)
    return (first + c_a * second) / (2 * pion)


def pcac_mass(ensemble, window, c_a):
    """(value, jackknife samples), mean of the window."""
    axial, pion = ensemble.channel['gxgygz-g5'], ensemble.channel['pion']
    samples = pcac(stats.jackknife_samples(axial), stats.jackknife_samples(pion), c_a)
    return fits.plateau(pcac(axial.mean(axis=0), pion.mean(axis=0), c_a), samples, *window)


def analyse(ensemble, o):
    """Dictionary of fits, and of the PCAC mass as (value, samples)."""
    pion, rho = (fits.fold(ensemble.channel[n]) for n in ('pion', 'rho'))
    return {'pion': fits.mass(pion, 'cosh', *o.pion, ensemble.extent),
            'rho': fits.mass(rho, 'cosh', *o.rho, ensemble.extent),
            'nucleon': fits.mass(ensemble.channel['nucleon'], 'exp', *o.nucleon, ensemble.extent),
            'pcac': pcac_mass(ensemble, o.pcac, o.c_a), 'window': o.pcac}


def compare(name, value, error, want, want_error, source):
    away = abs(value - want) / np.hypot(error, want_error)
    print('%s %s, %s %s: %.1f errors away' % (name, stats.text(value, error), source, stats.text(want, want_error), away))
    return away <= LIMIT


def window(text):
    first, last = (int(t) for t in text.split(':'))
    return first, last


def options():
    p = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    p.add_argument('files', nargs='+', metavar='FILE')
    for name, default in (('pion', (10, 15)), ('rho', (10, 15)), ('nucleon', (10, 15)), ('pcac', (8, 15))):
        p.add_argument('--' + name, type=window, default=default, metavar='FIRST:LAST')
    p.add_argument('--c-a', type=float, default=published.C_A)
    return p.parse_args()


def show(e, r):
    value, samples = r['pcac']
    print('kappa %.6g: %d configurations' % (e.kappa, len(e.channel['pion'])))
    for name in ('pion', 'rho', 'nucleon'):
        print('    %-8s %s' % (name, r[name]))
    print('    %-8s %s, t %d..%d' % ('PCAC', stats.text(value, stats.jackknife_error(samples)), *r['window']))
    ratio = r['pion'].mass / r['rho'].mass
    print('    m_pi/m_rho %s' % stats.text(ratio, stats.jackknife_error(r['pion'].samples / r['rho'].samples)))


def critical_kappa(ensembles, results):
    """Where the PCAC mass vanishes; quadratic in it with three points or more."""
    x = np.array([1 / (2 * e.kappa) for e in ensembles])
    y = np.array([r['pcac'][0] for r in results])
    samples = np.array([r['pcac'][1] for r in results]).T
    at, error = fits.crossing(x, y, samples, degree=min(2, len(x) - 1))
    return 1 / (2 * at), error / (2 * at**2)


def meson_slope(results):
    """J = m_V d m_V / d m_PS^2 where m_V = 1.8 m_PS, of a line through m_V(m_PS^2): (value, error)."""
    def j(pion, rho):
        slope, start = np.polyfit(pion**2, rho, 1)
        mass = (1 - np.sqrt(1 - 4 * slope * start / 1.8**2)) / (2 * slope / 1.8**2)
        return slope * mass
    samples = [j(p, r) for p, r in zip(*(np.array([x[n].samples for x in results]).T for n in ('pion', 'rho')))]
    value = j(*(np.array([x[n].mass for x in results]) for n in ('pion', 'rho')))
    return value, float(stats.jackknife_error(samples))


def main():
    o = options()
    ensembles = read(o.files)
    results = [analyse(e, o) for e in ensembles]
    improved = all(abs(e.csw - published.C_SW) < 1e-9 for e in ensembles)
    for e, r in zip(ensembles, results):
        show(e, r)
        for kappa, want, error in published.UNCHECKED_PIONS if improved else []:
            if abs(kappa - e.kappa) < 1e-7:
                compare('    pion', r['pion'].mass, r['pion'].error, want, error, 'QCDSF (unchecked)')
    good = True
    if len(ensembles) > 1:
        compare('J', *meson_slope(results), *published.UNCHECKED_J, 'quenched (unchecked)')
        value, error = critical_kappa(ensembles, results)
        if improved:
            good = compare('critical kappa', value, error, *published.KAPPA_CRITICAL)
        else:
            print('critical kappa %s' % stats.text(value, error))
    print('agrees' if good else 'DISAGREES')
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()
