"""Part of test_disk.py: uploads that are solved when they are on the disk (--spool all), which stalls or fails."""
import os
import tempfile

import tap

try:
    from disk_case import OPEN, page
    from front_case import fake, field
    from front_driver import STATUS, Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


HTTP = ('--http', '127.0.0.1:0')


def wait_for_the_disk(daemon, count):
    """Until so many are complete, and not there."""
    daemon.status_when(lambda _: 'quarkd_spool_waiting %d\n' % count in page(daemon, '/metrics')[1])


@tap.test
def what_waits_for_the_disk_is_not_solved_on_another_configuration(case):
    """The engine is lost, and the next one finds another file."""
    with case.state() as (state, disk), state.daemon('--spool', 'all', *HTTP, env={'FAKE_LOAD': 'change'}) as d, Client(d) as c:
        disk.stalls(60000, OPEN)
        c.upload(c.submit(2), [field() for _ in range(2)])
        wait_for_the_disk(d, 2)
        c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.DIE)
        for r in [c.expect('result') for _ in range(3)]:
            assert r.status == STATUS['ENGINE_LOST'] and 'gauge configuration has changed' in r.text, r
        disk.works()
        c.ack(1)
        d.status_when(lambda s: s.counters.requests == 1)
        assert d.status().counters.converged == 0


@tap.test
def what_waits_for_the_disk_ends_with_its_setup(case):
    """Its engine is lost, and its file is not there any more; the disk goes on later."""
    with tempfile.TemporaryDirectory() as folder, case.state() as (state, disk), state.daemon('--spool', 'all', *HTTP) as d, Client(d) as c:
        needed = os.path.join(folder, 'needed')
        open(needed, 'w', encoding='utf-8').close()
        c.send(load=qk.Load(name='second', gauge='builtin:fake:needs=' + needed))
        c.expect('setup')
        d.status_when(lambda s: [x.state for x in s.setups] == [qk.STATE_READY] * 2)
        disk.stalls(60000, OPEN)
        c.upload(c.submit(1, setup='second'), [field()])
        wait_for_the_disk(d, 1)
        os.unlink(needed)
        c.submit(1, source=qk.SOURCE_Z2, setup='second', max_iter=fake.DIE)
        for r in [c.expect('result') for _ in range(2)]:
            assert r.status == STATUS['ENGINE_LOST'] and 'no such file' in r.text, r
        disk.works()
        c.upload(c.submit(1), [field()])
        assert c.expect('result').status == 0
