#!/usr/bin/env python3
"""Average plaquettes of quark-gauge generate against the literature, and the couplings of its configurations against what
was asked for.

    plaquette.py [--point ACTION:BETA]... [--dims XxYxZxT] [--sweeps N] [--thermalise N] [--seed N] [--backend KIND]
                 [--configurations N] [--quark-gauge PROGRAM]

For every point (default: all with a published value, and Iwasaki 2.6) a chain is started cold, the first sweeps are
dropped, and lines are printed: plaquette with its error from the Gamma method, integrated autocorrelation time in sweeps,
published value and distance in combined errors; beta, with c1 as asked for, and c1, with beta free, as the configurations
have them (couplings.py). Exit status 1 where a distance is over three.
"""
import argparse
import sys
import tempfile

import couplings
import generator
import published
import stats

LIMIT = 3.0


def options():
    p = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    p.add_argument('--point', action='append', metavar='ACTION:BETA')
    p.add_argument('--dims', default='16x16x16x16')
    p.add_argument('--sweeps', type=int, default=3000, help='after thermalisation')
    p.add_argument('--thermalise', type=int, default=500)
    p.add_argument('--or-per-hb', type=int, default=4)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--backend', default='auto')
    p.add_argument('--configurations', type=int, default=10, help='for the couplings; 0: none')
    p.add_argument('--quark-gauge', default='quark-gauge')
    return p.parse_args()


def points(wanted):
    """(action, beta, published or None)"""
    known = {(action, beta): (value, error, source) for action, beta, _, value, error, source in published.PLAQUETTES}
    if not wanted:
        return [key + (value,) for key, value in known.items()] + [('iwasaki', 2.6, None)]
    keys = [(action, float(beta)) for action, beta in (w.split(':') for w in wanted)]
    return [key + (known.get(key),) for key in keys]


def run(o, action, beta, folder):
    every = o.sweeps // o.configurations if o.configurations else o.sweeps
    return generator.generate(o.quark_gauge, folder, o.dims, action, beta, o.thermalise + o.sweeps, every, o.seed,
                              o.or_per_hb, backend=o.backend)


def distance(value, error, want, want_error=0.0):
    return abs(value - want) / (error**2 + want_error**2)**0.5


def check(o, action, beta, literature):
    """Prints the lines of one point; whether all agrees."""
    with tempfile.TemporaryDirectory() as folder:
        chain = run(o, action, beta, folder)
        mean, error, tau, tau_error = stats.gamma_method(chain.plaquettes[o.thermalise:])
        line = '%-14s %-6g %-14s tau %-9s' % (action, beta, stats.text(mean, error), stats.text(tau, tau_error))
        good = True
        if literature:
            value, value_error, source = literature
            away = distance(mean, error, value, value_error)
            good = away <= LIMIT
            line += ' published %s: %.1f errors away (%s)' % (stats.text(value, value_error), away, source)
        print(line, flush=True)
        if o.configurations >= 3:
            c1 = generator.C1[action]
            found, its_error = couplings.measure(chain.configurations(o.thermalise), couplings.both(c1))
            away = [distance(found[i], its_error[i], want) for i, want in enumerate((beta, c1))]
            good = good and max(away) <= LIMIT
            print('    its configurations have beta %s, c1 %s: %.1f, %.1f errors away' % (
                stats.text(found[0], its_error[0]), stats.text(found[1], its_error[1]), *away), flush=True)
    return good


def main():
    o = options()
    print('%s, %d sweeps of 1 heatbath + %d overrelaxations after %d, seed %d' % (
        o.dims, o.sweeps, o.or_per_hb, o.thermalise, o.seed))
    verdicts = [check(o, *point) for point in points(o.point)]
    print('agrees' if all(verdicts) else 'DISAGREES')
    sys.exit(0 if all(verdicts) else 1)


if __name__ == '__main__':
    main()
