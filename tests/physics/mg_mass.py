#!/usr/bin/env python3
"""Multigrid and BiCGStab against the quark mass: iterations, applications of the operator, time.

    mg_mass.py --gauge FILE... [--kappa K,...] [--csw CSW] [--tol TOL] [--batch N,...] [--inner single|half]
               [--mg KEY=VALUE]... [--bench PROGRAM] [--save FILE] [...]
    mg_mass.py --log FILE... [--kappa-critical K] [--plot FILE.png]

Runs bench_mg once a configuration, or reads what it printed in earlier runs, and prints a table per lattice and batch; the
mass is m = (1/kappa - 1/kappa_c) / 2. With --plot a picture of it all (needs gnuplot). Of several sets of parameters
in a log the last one counts. Exit status 1 where a solve did not converge.
"""
import argparse
import collections
import re
import subprocess
import sys

import published

# One line of bench_mg's tables.
Point = collections.namedtuple('Point', 'lattice device kappa method batch iterations applications seconds converged')

COST = re.compile(r'(multigrid|bicgstab \w+) +(\d+) +([\d.]+) +\d+ +\d+ +([\d.]+) +([\d.]+) +\S+ +\S+(  NOT CONVERGED)?$')
HEAD = re.compile(r'.*, (\d+x\d+x\d+x\d+), csw \S+, tolerance (\S+), (.*) \((\w+)\)$')


def options():
    p = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    p.add_argument('--log', nargs='+', metavar='FILE', help='what bench_mg printed')
    p.add_argument('--gauge', nargs='+', metavar='FILE', help='configurations to run it on')
    p.add_argument('--kappa', default='0.1330,0.1338,0.1343,0.1346,0.1349,0.1350,0.1351', help='at most eight (%(default)s)')
    p.add_argument('--csw', default='1.769')
    p.add_argument('--tol', default='1e-10')
    p.add_argument('--batch', default='1,8')
    p.add_argument('--inner', default='single', help='precision inside BiCGStab (%(default)s)')
    p.add_argument('--mg', action='append', default=[], metavar='KEY=VALUE', help='a parameter of multigrid, as quarkd has it')
    p.add_argument('--bench', default='bench_mg', metavar='PROGRAM')
    p.add_argument('--save', metavar='FILE', help='keep what bench_mg prints')
    p.add_argument('--kappa-critical', type=float, default=published.KAPPA_CRITICAL[0])
    p.add_argument('--plot', metavar='FILE')
    o = p.parse_args()
    if bool(o.log) == bool(o.gauge):
        p.error('one of --log and --gauge is needed')
    return o


def parse(text):
    """The points of one or more runs, in order; later ones of the same place replace earlier ones."""
    points, lattice, device, kappa = {}, None, None, None
    for line in text.splitlines():
        if m := HEAD.match(line):
            lattice, device = m[1], m[3] if m[4] != 'cpu' else m[3] + ', CPU'
        elif m := re.match(r'kappa (\S+)$', line):
            kappa = float(m[1])
        elif m := COST.match(line):
            if not lattice or not kappa:
                raise ValueError('a cost before the lattice and kappa: ' + line)
            point = Point(lattice, device, kappa, m[1], int(m[2]), float(m[3]), float(m[4]), float(m[5]), not m[6])
            points[lattice, kappa, m[1], m[2]] = point
    return list(points.values())


def measure(o):
    text = ''
    for gauge in o.gauge:
        command = [o.bench, '--gauge=' + gauge, '--kappa=' + o.kappa, '--csw=' + o.csw, '--tol=' + o.tol, '--batch=' + o.batch,
                   '--plain=' + o.inner] + ['--mg=' + parameter for parameter in o.mg]
        text += subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    if o.save:
        with open(o.save, 'w', encoding='utf-8') as f:
            f.write(text)
    return text


def mass(kappa, critical):
    if not 0 < kappa < critical:
        raise ValueError('kappa %g: not between 0 and the critical %g' % (kappa, critical))
    return (1 / kappa - 1 / critical) / 2


def curves(points, critical):
    """{(lattice, device, batch): {method: [(mass, point)]}}, heavy quarks first."""
    out = {}
    for p in sorted(points, key=lambda p: p.kappa):
        group = out.setdefault((p.lattice, p.device, p.batch), {})
        group.setdefault(p.method, []).append((mass(p.kappa, critical), p))
    return out


def cells(p):
    return '%.1f | %.0f | %.4f%s' % (p.iterations, p.applications, p.seconds, '' if p.converged else ' (not converged)')


def show(group):
    """A table with the methods side by side, and what multigrid gains."""
    (lattice, device, batch), methods = group
    print('%s, %d RHS (%s)\n' % (lattice.replace('x', '×'), batch, device))
    names = sorted(methods, reverse=True)
    print('| kappa | m |' + ''.join(' %s: iterations | applications | s per RHS |' % n for n in names) + ' gain |')
    print('| --- | --- |' + ' --- |' * (3 * len(names) + 1))
    kappas = sorted({p.kappa for series in methods.values() for _, p in series})
    at = {(n, p.kappa): (m, p) for n, series in methods.items() for m, p in series}
    for kappa in kappas:
        have = [at.get((n, kappa)) for n in names]
        row = ['%g' % kappa, '%.4f' % next(h[0] for h in have if h)]
        row += [cells(h[1]) if h else ' | | ' for h in have]
        both = all(h and h[1].converged for h in have) and len(have) == 2
        row.append('%.1f' % (have[1][1].seconds / have[0][1].seconds) if both else '')
        print('| ' + ' | '.join(row) + ' |')
    print()


def plot(groups, path):
    """Three panels, drawn by gnuplot; what did not converge is left out."""
    data, curve, keys = [], [], []
    for colour, ((lattice, _, batch), methods) in enumerate(groups.items(), 1):
        for name, series in sorted(methods.items()):
            rows = ['%g %g %g %g' % (m, p.iterations, p.applications, p.seconds) for m, p in series if p.converged]
            if not rows:
                continue
            data += ['$d%d << EOD' % len(curve), *rows, 'EOD']
            curve.append('lc %d lw 2 %s' % (colour, 'dt 1 pt 7' if name == 'multigrid' else 'dt 2 pt 4'))
            keys.append('%s, %s, %d RHS' % (name, lattice.replace('x', '×'), batch))
    panels = []
    for column, title in enumerate(('(outer) iterations', 'applications per RHS', 'seconds per RHS'), 2):
        lines = ['$d%d using 1:%d with linespoints %s %s' % (k, column, style, 'title "%s"' % keys[k] if column == 2 else 'notitle')
                 for k, style in enumerate(curve)]
        panels += ['set title "%s"' % title, 'plot ' + ', '.join(lines), 'unset key']
    setup = ['set terminal pngcairo size 1200,480 noenhanced font "sans,10"', 'set output "%s"' % path,
             'set multiplot layout 1,3 margins 0.05,0.98,%g,0.92 spacing 0.05' % (0.12 + 0.045 * ((len(keys) + 2) // 3)),
             'set logscale xy', 'set xtics (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)', 'set format y "%g"',
             'set grid xtics ytics mytics', 'set xlabel "m = (1/κ − 1/κc) / 2"', 'set offsets graph 0.05, graph 0.05',
             'set key at screen 0.5, 0.01 center bottom maxrows %d' % ((len(keys) + 2) // 3)]
    subprocess.run(['gnuplot'], input='\n'.join(data + setup + panels + ['unset multiplot', '']), text=True, check=True)


def main():
    o = options()
    try:
        points = parse(measure(o) if o.gauge else ''.join(open(name, encoding='utf-8').read() for name in o.log))
        groups = curves(points, o.kappa_critical)
    except (OSError, ValueError, subprocess.CalledProcessError) as e:
        sys.exit('mg_mass.py: %s' % e)
    if not points:
        sys.exit('mg_mass.py: no table of bench_mg there')
    for group in groups.items():
        show(group)
    if o.plot:
        try:
            plot(groups, o.plot)
        except (OSError, subprocess.CalledProcessError) as e:
            sys.exit('mg_mass.py: --plot: %s' % e)
    sys.exit(0 if all(p.converged for p in points) else 1)


if __name__ == '__main__':
    main()
