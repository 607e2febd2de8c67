#!/usr/bin/env python3
"""Memory that a cgroup or Slurm limits: what is planned, and what is said when it has run out all the same. Needs root for cgroups,
of version 1 or 2; what needs one is skipped elsewhere: test_memory.py QUARKD QUARK-ENGINE"""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

import tap

try:
    from front_case import Case, fake, field, gone
    from front_driver import STATUS, Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

MIB = 1 << 20
LATTICE = 'builtin:weak:8x8x8x32:3'
FIELD = 8 * 8 * 8 * 32 * 24 * 8


def limits():
    """(folder below which a group can be made, name of its limit)."""
    own = dict(line.strip().split(':', 2)[1:] for line in open('/proc/self/cgroup', encoding='utf-8'))
    for line in open('/proc/self/mountinfo', encoding='utf-8'):
        mount, tail = line.split()[4], line.split(' - ')[1].split()
        if tail[0] == 'cgroup' and 'memory' in tail[2].split(','):
            path = next((p for names, p in own.items() if 'memory' in names.split(',')), '/')
            return [mount + path, mount], 'memory.limit_in_bytes'
        if tail[0] == 'cgroup2' and 'memory' in open(mount + '/cgroup.subtree_control', encoding='utf-8').read().split():
            return [mount], 'memory.max'
    raise tap.Skip('there are no cgroups with memory')


@contextlib.contextmanager
def group(limit):
    """A cgroup with that limit in bytes: its folder, and the path of the limit."""
    folders, name = limits()
    for above in folders:
        try:
            folder = tempfile.mkdtemp(prefix='qk-memory-', dir=above)
            break
        except OSError as e:
            why = e
    else:
        raise tap.Skip('no cgroup can be made: %s' % why)
    try:
        path = os.path.join(folder, name)
        try:
            with open(path, 'w', encoding='utf-8') as f:
                f.write(str(limit))
            swap = os.path.join(folder, 'memory.swap.max' if name == 'memory.max' else 'memory.memsw.limit_in_bytes')
            with contextlib.suppress(OSError), open(swap, 'w', encoding='utf-8') as f:
                f.write('0' if name == 'memory.max' else str(limit))
        except OSError as e:
            raise tap.Skip('no limit can be set: %s' % e) from e
        yield folder, path
    finally:
        with open(os.path.join(folder, 'cgroup.procs'), encoding='utf-8') as f:
            for pid in map(int, f.read().split()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                gone(pid)
        os.rmdir(folder)


def kills(folder):
    for name in ('memory.events', 'memory.oom_control'):
        with contextlib.suppress(OSError), open(os.path.join(folder, name), encoding='utf-8') as f:
            return next((int(line.split()[1]) for line in f if line.startswith('oom_kill ')), 0)
    return 0


HOG = '''
import os, sys
path = sys.argv[1]
folder = os.path.dirname(path)
used = folder + ('/memory.current' if path.endswith('max') else '/memory.usage_in_bytes')
limit, held = int(open(path).read()), []
while int(open(used).read()) < limit - (16 << 20):
    held.append(b'x' * (1 << 20))
print('full', flush=True)
sys.stdin.read()
'''


class MemoryCase(Case):
    def __init__(self, quarkd, engine):
        super().__init__(os.path.abspath(quarkd))
        self.engine = os.path.abspath(engine)

    @contextlib.contextmanager
    def inside(self, folder):
        """A program that starts quarkd in that cgroup, with all that it starts."""
        binary = self.binary
        with tempfile.TemporaryDirectory() as place:
            self.binary = os.path.join(place, 'quarkd')
            with open(self.binary, 'w', encoding='utf-8') as f:
                f.write('#!/bin/sh\necho $$ > %s/cgroup.procs && exec %s "$@"\n' % (folder, binary))
            os.chmod(self.binary, 0o755)
            try:
                yield
            finally:
                self.binary = binary


def answer(client):
    """To a SUBMIT; other messages are kept for later."""
    while True:
        name, body = client.receive_new()
        if name in ('accepted', 'rejected'):
            return name, body
        client.later.append((name, body))


def fill(client, limit):
    """Generated requests are sent until one finds no room, and what is taken is waited for: how many were."""
    taken = 0
    while True:
        client.request += 1
        client.submit(1, request=client.request, expect=None, source=qk.SOURCE_Z2, tol=1e-3, column=[qk.Column(seed=taken)])
        name, body = answer(client)
        if name == 'rejected':
            assert body.status == STATUS['BUSY'], body
            break
        taken += 1
        assert taken * FIELD <= limit
    for r in client.results(taken):
        assert r.status == STATUS['OK'], r
    return taken


@tap.test
def what_is_planned_fits_into_a_cgroup(case):
    with group(320 * MIB) as (folder, path), case.inside(folder):
        with case.daemon('--solver', 'bicgstab', engine=case.engine, gauge=LATTICE) as d:
            s = d.status()
            assert s.memory_by == path and 80 * MIB < s.memory_limit <= 160 * MIB, s
            assert 1 <= s.engine.slots < 16 and s.engine.memory.free < 320 * MIB - s.memory_limit, s.engine
            with Client(d) as c:
                assert fill(c, s.memory_limit) >= 3
            s = d.status()
            assert s.engine.restarts == 0 and s.counters.lost == 0 and kills(folder) == 0, s


@tap.test
def what_does_not_fit_is_refused_by_name(case):
    with group(320 * MIB) as (folder, path), case.inside(folder):
        with case.daemon('--solver', 'bicgstab', '--slots', '16', engine=case.engine, gauge=LATTICE, wait='setup rejected') as d:
            line = d.log('setup rejected: DEVICE_MEMORY')
            assert line and path in line.string and 'max-memory' in line.string, d.lines
            assert d.wait() == 69 and kills(folder) == 0


@tap.test
def what_others_of_the_cgroup_have_taken_is_not_promised(case):
    with group(200 * MIB) as (folder, path), case.inside(folder), case.daemon('--max-memory', '64M') as d, Client(d) as c:
        c.solve([field()])
        hog = subprocess.Popen(['/bin/sh', '-c', 'echo $$ > %s/cgroup.procs && exec "$@"' % folder, 'sh', sys.executable, '-c', HOG,
                                folder + '/' + os.path.basename(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            assert hog.stdout.readline() == b'full\n'
            c.request += 1
            end = time.monotonic() + 60
            while time.monotonic() < end:  # what was read of the group is good for a second
                c.submit(400, request=c.request, expect=None, source=qk.SOURCE_Z2, max_iter=fake.HOLD)
                name, body = answer(c)
                if name == 'rejected':
                    break
                c.send(release=qk.Release(request=c.request))
                c.request += 1
            assert body.status == STATUS['BUSY'] and path in body.text, body
        finally:
            hog.communicate()
        assert kills(folder) == 0


@tap.test
def an_engine_that_is_killed_for_want_of_memory_is_said_to_be(case):
    with group(256 * MIB) as (folder, _), case.inside(folder), case.daemon('--max-memory', '16M') as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.GORGE)
        r = c.expect('result')
        assert r.status == STATUS['ENGINE_LOST'] and 'because cgroup %s ran out of memory' % folder in r.text[:200] + d.status(
        ).engine.last_error, r
        line = d.log('engine lost: killed by the kernel')
        assert line and folder in line.string and '--max-memory' in line.string, line
        assert kills(folder) >= 2


@tap.test
def an_engine_that_is_killed_otherwise_is_not(case):
    with group(256 * MIB) as (folder, _), case.inside(folder), case.daemon('--max-memory', '16M') as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.DIE)
        assert c.expect('result').status == STATUS['ENGINE_LOST']
        assert d.log('engine lost: (signal|exit)') and kills(folder) == 0


@tap.test
def what_slurm_gives_is_planned_with(case):
    slurm = {'SLURM_MEM_PER_CPU': '160', 'SLURM_CPUS_ON_NODE': '2'}
    with case.daemon('--solver', 'bicgstab', engine=case.engine, gauge=LATTICE, env=slurm) as d:
        s = d.status()
        assert s.memory_by == 'SLURM_MEM_PER_CPU' and 80 * MIB < s.memory_limit <= 160 * MIB, s
        assert 1 <= s.engine.slots < 16, s.engine
    with case.daemon('--max-memory', '4G', env={'SLURM_MEM_PER_NODE': '100'}) as d:
        assert d.status().memory_by == 'max-memory' and d.log(r'max-memory = 4294967296 is over the \d+ bytes that are free \(SLURM')


if __name__ == '__main__':
    tap.run(MemoryCase(*sys.argv[1:]))
