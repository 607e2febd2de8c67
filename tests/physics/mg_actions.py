#!/usr/bin/env python3
"""Multigrid of several fermion actions at one pion mass: outer iterations beside those of the first action.

    mg_actions.py --gauge FILE [--pion M] [--action TEXT]... [--tol TOL] [--mg KEY=VALUE]... [--bench PROGRAM]

An action is a text as quarkd has it, without mass: "wilson-clover;csw=1.769". For each the mass is looked for at which the
pion of a propagator (a point at the origin, effective mass from T/4 to T/2 on this configuration alone) has the mass M:
m_pi^2 is interpolated linearly in m. With "mu=@M0" mu is looked for instead, at the critical mass M0. Then the iterations of
twelve columns are compared. Runs bench_mg; QK_BACKEND names the backend. Exit status 1 if a solve did not converge.
"""
import argparse
import re
import subprocess
import sys

# Text, first two guesses of the mass or mu, for quenched lattices at beta = 6.
ACTIONS = {
    'wilson-clover;csw=1.769': (-0.25, -0.27),
    'wilson': (-0.72, -0.75),
    'wilson-clover;csw=1.2;links=stout:0.125,1': (-0.05, -0.08),
    'wilson-clover;csw=1.1;links=hex:0.95,0.76,0.38,2': (0.05, 0.02),
    'wilson-clover;csw=1.769;links=slinc:0.1,1': (0.1, 0.06),
    'anisotropic-clover;xi0=2.464;nu=0.95;c-r=0.91;c-t=1.07': (-0.05, -0.08),
    'twisted-clover;mu=@-0.30167;csw=1.769': (0.05, 0.03),
}


def options():
    p = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    p.add_argument('--gauge', required=True, metavar='FILE')
    p.add_argument('--pion', type=float, default=0.3, metavar='M', help='in units of 1/a (%(default)s)')
    p.add_argument('--action', action='append', default=[], metavar='TEXT:M1,M2', help='with two first guesses of the mass')
    p.add_argument('--tol', default='1e-10')
    p.add_argument('--mg', action='append', default=[], metavar='KEY=VALUE', help='a parameter of multigrid, as quarkd has it')
    p.add_argument('--bench', default='bench_mg', metavar='PROGRAM')
    return p.parse_args()


def operator(text, x):
    """The action with x for its mass, or for mu where that is looked for."""
    name, *rest = text.split(';')
    values = dict(r.split('=', 1) for r in rest)
    if '@' in values.get('mu', ''):
        values = {'mass': values['mu'].split('@')[1], **values, 'mu': repr(x)}
    else:
        values = {'mass': repr(x), **values}
    return ';'.join([name, *(f'{k}={v}' for k, v in values.items())])


def run(o, text):
    """Pion mass, iterations, convergence factor that the setup measured; nothing if there is no setup."""
    done = subprocess.run([o.bench, '--gauge', o.gauge, '--tol', o.tol, '--batch', '12', '--point', '--pion', '--action', text,
                           *(f'--mg={m}' for m in o.mg)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise ValueError(f'{text}: no setup')
    if 'NOT CONVERGED' in done.stdout:
        sys.exit(f'{text}: not converged\n{done.stdout}')
    pion = float(re.search(r'^pion mass (\S+)', done.stdout, re.M)[1])
    iterations = float(re.search(r'^multigrid +12 +(\S+)', done.stdout, re.M)[1])
    factor = float(re.search(r'convergence (\S+) an iteration', done.stdout)[1])
    return pion, iterations, factor


def look(o, text, guess):
    """The operator with the wanted pion mass to 3 %, from two guesses."""
    points = [(x, *run(o, operator(text, x))) for x in guess]
    for _ in range(8):
        points.sort(key=lambda p: abs(p[1] - o.pion))
        if abs(points[0][1] / o.pion - 1) < 0.03:
            break
        (a, pa, *_), (b, pb, *_) = points[:2]
        wanted = max(o.pion, 0.6 * pa)  # far below what is known a line is no guide
        x = a + (b - a) * (wanted ** 2 - pa ** 2) / (pb ** 2 - pa ** 2)
        points.append((x, *run(o, operator(text, x))))
    x, pion, iterations, factor = min(points, key=lambda p: abs(p[1] - o.pion))
    return operator(text, x), pion, iterations, factor


def main():
    o = options()
    actions = dict(ACTIONS) if not o.action else {}
    for a in o.action:
        text, guess = a.rsplit(':', 1)
        actions[text] = tuple(map(float, guess.split(',')))
    first = None
    print('%7s %6s %6s %7s  %s' % ('m_pi', 'iter', 'ratio', 'factor', 'operator'))
    for text, guess in actions.items():
        try:
            found, pion, iterations, factor = look(o, text, guess)
        except ValueError as why:
            print(why, flush=True)
            continue
        first = first or iterations
        print('%7.4f %6.1f %6.2f %7.3f  %s' % (pion, iterations, iterations / first, factor, found), flush=True)


main()
