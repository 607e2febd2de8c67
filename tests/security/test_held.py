#!/usr/bin/env python3
"""Thousands of solutions that wait to be fetched: test_held.py QUARKD"""
import os
import shutil
import sys

import tap

try:
    from front_case import Case, check_solves, descriptors, field
    from front_driver import Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

FIELD_4 = 4**4 * 24 * 8


def mapped(pid):
    with open('/proc/%d/maps' % pid, encoding='utf-8') as f:
        return sum('/dev/shm/quarkd-' in line for line in f)


@tap.test
def held_solutions_are_not_mapped(case):
    with case.daemon() as d, Client(d) as c:
        fields = [field() for _ in range(3)]
        held = c.submit(1000, source=qk.SOURCE_Z2).request
        for r in c.results(1000):
            assert r.status == 0
        assert mapped(d.process.pid) == 0
        accepted = c.submit(3)
        c.upload(accepted, fields)
        results = c.results(3)
        for b, r in zip(fields, results):
            assert (c.fetch(r) == 2 * b).all()
        c.ping()
        assert mapped(d.process.pid) == 0
        before = descriptors(d)
        for rhs in range(400):  # begun and left
            c.send(grant=qk.Grant(request=held, rhs=rhs, until=1000))
        for _ in range(400):
            assert c.chunk()['chunk_bytes'] == 1000
        assert mapped(d.process.pid) == 0 and descriptors(d) < before + 40, (before, descriptors(d))


@tap.test
def more_are_held_than_a_process_may_map(case):
    """And one more client uploads, solves and fetches."""
    with open('/proc/sys/vm/max_map_count', encoding='ascii') as f:
        requests = int(f.read()) // 1024 + 1
    room = requests * 1024 * (FIELD_4 // 2) + (1 << 30)
    if requests > 128 or shutil.disk_usage('/dev/shm').free < 2 * room:
        raise tap.Skip('%d solutions would take too much memory' % (requests * 1024))
    with case.daemon('--max-memory', str(room), '--user-rhs', '1000000', '--log-level', 'info') as d, Client(d) as c:
        for _ in range(requests):
            c.submit(1024, source=qk.SOURCE_Z2, dtype=qk.DTYPE_F32, expect=None)
        for _ in range(requests * 1024):
            assert c.expect('result', skip=('accepted', 'progress')).status == 0
        assert mapped(d.process.pid) == 0
        with Client(d) as other:
            check_solves(other)


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:]))
