#!/usr/bin/env python3
"""Multigrid and BiCGStab against the quark mass: iterations, applications of the operator, time.

    mg_mass.py --gauge FILE... [--kappa K,...] [--csw CSW] [--tol TOL] [--batch N,...] [--inner single|half]
               [--mg KEY=VALUE]... [--bench PROGRAM] [--save FILE] [...]
    mg_mass.py --log FILE... [--kappa-critical K] [--plot FILE.png]

Runs bench_mg once a configuration, or reads what it printed in earlier runs, and prints a table per lattice and batch; the
mass is m = (1/kappa - 1/kappa_c) / 2. With --plot a picture of it all (needs matplotlib). Of several sets of parameters
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
        row = ['%.4f' % kappa, '%.4f' % next(h[0] for h in have if h)]
        row += [cells(h[1]) if h else ' | | ' for h in have]
        both = all(h and h[1].converged for h in have) and len(have) == 2
        row.append('%.1f' % (have[1][1].seconds / have[0][1].seconds) if both else '')
        print('| ' + ' | '.join(row) + ' |')
    print()


def plot(groups, path):
    import matplotlib
    matplotlib.use('Agg')
    from matplotlib import pyplot, ticker
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 4.2), sharex=True)
    for k, ((lattice, _, batch), methods) in enumerate(groups.items()):
        for name, series in methods.items():
            series = [(m, p) for m, p in series if p.converged]
            mg = name == 'multigrid'
            style = dict(color='C%d' % k, marker='o' if mg else 's', linestyle='-' if mg else '--', markersize=4,
                         label='%s, %s, %d RHS' % (name, lattice.replace('x', '×'), batch))
            for axis, field in zip(axes, ('iterations', 'applications', 'seconds')):
                axis.plot([m for m, _ in series], [getattr(p, field) for _, p in series], **style)
    for axis, title in zip(axes, ('(outer) iterations', 'applications per RHS', 'seconds per RHS')):
        axis.set(xscale='log', yscale='log', xlabel='m = (1/κ − 1/κ$_c$) / 2', title=title)
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            side.set_major_formatter('{x:g}')
            side.set_minor_locator(ticker.NullLocator())
        axis.grid(True, alpha=0.4)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc='lower center', ncol=min(4, len(labels)), fontsize=8)
    figure.tight_layout(rect=(0, 0.06 * (1 + (len(labels) - 1) // 4), 1, 1))
    figure.savefig(path, dpi=90)


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
        except (ImportError, OSError) as e:
            sys.exit('mg_mass.py: --plot: %s' % e)
    sys.exit(0 if all(p.converged for p in points) else 1)


if __name__ == '__main__':
    main()
