#!/usr/bin/env python3
"""The programs on the GPU against the same on the CPU: compare_backends.py QUARKD QUARKCTL QUARK_GAUGE

A generated configuration must have the same digest, bit for bit, also when its gauge is fixed; all correlators of a smeared source, contracted by the
daemon, must agree to the accuracy of the solutions; so must what `apply` and `solve` make of random fields, with multigrid,
of both adjoints, by the heavy-quark residual. Needs a GPU; neither numpy nor h5py. Exit status 1 on disagreement.
"""
import array
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile

LIMIT = 120  # seconds of any step
TOLERANCE = 1e-11  # of the solutions
AGREE = 1e-8  # of correlators, relative to their size
AGREE_FIELD = 1e-9  # of solutions, relative to the largest number
AGREE_WORK = 1e-13  # of operators that are applied, likewise
SITES = 8 * 8 * 8 * 16
FIELDS = 3
COMMANDS = {  # of random fields
    **{w + dagger: ['apply', '--work=' + w, *(['--dagger'] if dagger else [])]
       for w in ('m', 'hop', 'diag', 'diag-inverse', 'diag-inverse-hop') for dagger in ('', ' dagger')},
    'smear': ['apply', '--work=smear', '--smear=gauss:width=2,steps=5'],
    'solve': ['solve', '--tol=%g' % TOLERANCE],
    'solve dagger': ['solve', '--dagger', '--tol=%g' % TOLERANCE],
    'solve hq': ['solve', '--tol-hq=%g' % TOLERANCE, '--normalisation=kappa'],
}


def run(*command, env=None):
    done = subprocess.run([str(c) for c in command], env=env, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
        sys.exit('%s: exit %d\n%s' % (' '.join(map(str, command)), done.returncode, done.stdout + done.stderr))
    return json.loads(done.stdout)


def generate(quark_gauge, backend, folder):
    """(file, digest) of a small chain with plaquettes and one with rectangles."""
    out = []
    for action in ('wilson', 'iwasaki'):
        name = os.path.join(folder, backend + '-' + action + '.%d.lime')
        run(quark_gauge, 'generate', '--dims=8x8x8x16', '--beta=6.0' if action == 'wilson' else '--beta=2.6',
            '--action=' + action, '--sweeps=20', '--seed=3', '--backend=' + backend, '--out=' + name, '--json')
        path = name % 20
        out.append((path, run(quark_gauge, 'info', '--json', path)['digest']))
    return out


def fixed(quark_gauge, backend, path, folder):
    """[iterations and digest] of a configuration in both gauges."""
    out = []
    for gauge in ('landau', 'coulomb'):
        name = os.path.join(folder, '%s-%s.lime' % (backend, gauge))
        told = run(quark_gauge, 'fix', '--gauge=' + gauge, '--tol=1e-10', '--backend=' + backend, '--json', path, name)
        out.append((told['iterations'], run(quark_gauge, 'info', '--json', name)['digest']))
    return out


def fields(quarkctl, backend, folder, env):
    """{command: numbers that it makes of the random fields}"""
    found = {}
    for i, (name, command) in enumerate(COMMANDS.items()):
        out = os.path.join(folder, '%s.%d.raw' % (backend, i))
        run(quarkctl, *command, '--source=file:%s,nrhs=%d' % (os.path.join(folder, 'in.raw'), FIELDS), '--sink=file:' + out, '--json', env=env)
        found[name] = array.array('d')
        with open(out, 'rb') as f:
            found[name].fromfile(f, FIELDS * SITES * 24)
    return found


def all_of(quarkd, quarkctl, backend, gauge, folder):
    """The list of `quarkctl correlator --json`, and fields()."""
    daemon = subprocess.Popen([quarkd, '--gauge', gauge, '--kappa=0.125', '--csw=1.769', '--backend=' + backend,
                               '--file-roots=' + folder, '--listen=tcp://127.0.0.1:0'], stderr=subprocess.PIPE, text=True)
    try:
        endpoint = next(re.search(r'listening on ([^\s,]+)', line)[1] for line in daemon.stderr if 'listening on' in line)
        env = dict(os.environ, QUARKD_ENDPOINT=endpoint)
        found = run(quarkctl, 'correlator', '--source=point:1,2,3,4', '--smear=gauss:width=2,steps=10', '--smear-links=hyp:0.75,0.6,0.3,2',
                    '--smear-sink=gauss:width=1.5,steps=4', '--channels=all,pairs', '--momenta=0,0,0;1,0,-1', '--tol=%g' % TOLERANCE,
                    '--out=' + os.path.join(folder, backend + '.h5'), '--json', env=env)
        run(quarkctl, 'sequential', '--source=point:1,2,3,4', '--gamma=g5', '--sink-time=9', '--out=' + os.path.join(folder, 's.h5'),
            '--json', env=env)
        made = fields(quarkctl, backend, folder, env)
        run(quarkctl, 'shutdown', '--json', env=env)
        daemon.communicate(timeout=LIMIT)
    finally:
        daemon.kill()
    return found['pieces'][0]['correlators'], made


def size(correlator):
    return max(math.hypot(re, im) for re, im in zip(correlator['re'], correlator['im']))


def compare(cpu, gpu):
    """The largest difference of two lists of correlators, relative to the largest number of the correlator, or of all pairs
    of gamma matrices where it is one of those (some nearly vanish)."""
    pairs = max(size(c) for c in cpu if '-' in c['channel'])
    worst = (0.0, '')
    for a, b in zip(cpu, gpu, strict=True):
        assert (a['channel'], a['p']) == (b['channel'], b['p'])
        scale = pairs if '-' in a['channel'] else size(a)
        away = max(math.hypot(x - u, y - v) for x, y, u, v in zip(a['re'], a['im'], b['re'], b['im'])) / scale
        worst = max(worst, (away, a['channel']))
    return worst


def compare_fields(cpu, gpu):
    """Whether they agree; says by how much."""
    good = True
    for name, a in cpu.items():
        away = max(abs(x - y) for x, y in zip(a, gpu[name], strict=True)) / max(map(abs, a))
        limit = AGREE_FIELD if name.startswith('solve') else AGREE_WORK
        print('%s: differs by at most %.2g of the largest number (limit %g)' % (name, away, limit))
        good = good and away <= limit
    return good


def main():
    quarkd, quarkctl, quark_gauge = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        chains = [generate(quark_gauge, b, folder) for b in ('cpu', 'cuda')]
        for (path, cpu), (_, gpu) in zip(*chains):
            print('%s: digest %s on the CPU, %s on the GPU' % (os.path.basename(path), cpu, gpu))
        same = all(a[1] == b[1] for a, b in zip(*chains))
        gauges = [fixed(quark_gauge, b, chains[0][0][0], folder) for b in ('cpu', 'cuda')]
        print('gauge fixed, iterations and digest: %s on the CPU, %s on the GPU' % tuple(gauges))
        same = same and gauges[0] == gauges[1]
        random.seed(1)
        with open(os.path.join(folder, 'in.raw'), 'wb') as f:
            array.array('d', (random.gauss(0, 1) for _ in range(FIELDS * SITES * 24))).tofile(f)
        (cpu, cpu_fields), (gpu, gpu_fields) = (all_of(quarkd, quarkctl, b, chains[0][0][0], folder) for b in ('cpu', 'cuda'))
    worst, channel = compare(cpu, gpu)
    print('%d correlators differ by at most %.2g of their size (%s)' % (len(cpu), worst, channel))
    agree = compare_fields(cpu_fields, gpu_fields)
    sys.exit(0 if same and worst <= AGREE and agree else 1)


if __name__ == '__main__':
    main()
