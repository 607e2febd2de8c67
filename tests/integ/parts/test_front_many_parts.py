#!/usr/bin/env python3
"""Requests in parts: many of them and others beside them, slow ranks: test_front_many_parts.py QUARKD"""
import sys

import tap

try:
    from front_case import fake
    from front_driver import STATUS, Client, qk
    from front_parts import join, settled
    from setups_case import Setups
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


@tap.test
def ends_of_many_parts_come_bit_by_bit(case):
    """Others are served between the RESULTs of 32 clients, which have 512 parts of 256 right-hand sides."""
    grid, n, others = (4, 4, 4, 8), 256, []
    columns = [qk.Column(seed=i) for i in range(n)]

    def joined(owner):
        a = owner.submit(n, source=qk.SOURCE_Z2, sink=qk.SINK_NONE, grid=grid, max_iter=fake.HOLD, column=columns)
        for p in range(512):
            join(others[p % 32], owner, a, p)
        return a

    def first_sight(d, condition, owner, **body):
        owner.send(**body)
        return d.status_when(condition).counters
    with case.daemon('--dims', '8x8x8x16') as d, Client(d) as owner:
        others += [Client(d) for _ in range(32)]
        a = joined(owner)
        seen = first_sight(d, lambda s: s.counters.held > 0, owner, cancel=qk.Cancel(request=a.request, rhs=range(32, n)))
        assert seen.held < (512 + 1) * (n - 32), seen
        d.status_when(lambda s: s.counters.held == (512 + 1) * (n - 32))  # those that were named, and no others
        seen = first_sight(d, lambda s: s.counters.held > (512 + 1) * (n - 32), owner, cancel=qk.Cancel(request=a.request))
        d.status_when(lambda s: s.counters.held == (512 + 1) * n)
        assert all(r.status == STATUS['CANCELLED'] for r in owner.results(n))
        seen = first_sight(d, lambda s: s.counters.requests < 513, owner, release=qk.Release(request=a.request))
        assert seen.requests > 0, seen
        for c in others:
            c.close()
        d.status_when(lambda s: s.counters.requests == 0)
        settled(d)


@tap.test
def who_fetches_a_part_uses_the_whole(case):
    grid = (1, 1, 1, 2)
    with case.daemon() as d, Client(d) as owner, Client(d) as c:
        a = owner.submit(1, source=qk.SOURCE_Z2, sink=qk.SINK_KEEP, keep_ms=600, grid=grid)
        h = join(c, owner, a, 1)
        r = c.expect('result')
        owner.results(1)
        owner.ack(a.request)
        for n in range(1, 6):
            c.send(grant=qk.Grant(request=h.request, rhs=0, until=16 * n))
            assert c.chunk()['offset'] == 16 * (n - 1)
            c.control.poll(300)
        assert d.status().counters.kept_bytes > 0
        # the owner lets it go: a GRANT that comes too late says nothing else
        owner.send(release=qk.Release(request=a.request))
        owner.ping()
        c.send(grant=qk.Grant(request=h.request, rhs=0, until=r.bytes))
        assert c.expect('result').status == STATUS['CANCELLED']
        c.error('CANCELLED', fatal=False)
        settled(d)


if __name__ == '__main__':
    tap.run(Setups(sys.argv[1], None))
