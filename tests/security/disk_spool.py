"""Part of test_disk.py: uploads that are solved when they are on the disk (--spool all), which stalls or fails."""
import errno
import os
import tempfile

import tap

try:
    from disk import FOLDER, OPEN, Disk
    from disk_case import page, page_when
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
        d.log('second: setup rejected: .*no such file')
        for r in [c.expect('result') for _ in range(2)]:
            assert r.status == STATUS['ENGINE_LOST'] and 'no such file' in r.text, r
        disk.works()
        c.upload(c.submit(1), [field()])
        assert c.expect('result').status == 0


@tap.test
def what_is_solved_is_on_the_disk_of_the_journal_too(case):
    """Which is another one, and stalls: the source is in the spool, but a journal that ends with the machine would not know it."""
    with tempfile.TemporaryDirectory() as folder, case.state() as (state, _):
        journal = os.path.join(folder, 'journal')
        os.mkdir(journal, 0o700)
        disk = Disk(case.shim, journal)
        with state.daemon('--spool', 'all', '--journal', journal, env=disk.env) as d, Client(d) as c:
            accepted = c.submit(1)
            disk.stalls(60000)
            c.upload(accepted, [field()])
            d.log('is on the disk')
            disk.when_met()
            c.ping()
            counters = d.status().counters
            assert counters.running == counters.converged == 0, counters
            disk.works()
            assert c.expect('result').status == 0
            disk.file.close()


@tap.test
def a_folder_that_cannot_be_synced_holds_nothing(case):
    """The files are synced, their folder is not: after a power cut they may have no names."""
    with case.state() as (state, disk), state.daemon('--spool', 'all') as d, Client(d) as c:
        accepted = c.submit(1)
        disk.fails(errno.EIO, FOLDER)
        c.upload(accepted, [field()])
        assert d.log('rhs 0: its upload is not on disk: .*/spool: Input/output error')
        disk.works()
        assert c.expect('result').status == 0


@tap.test
def a_spool_that_takes_nothing_is_trouble_until_it_does(case):
    """Uploads are not solved, so new ones are rejected; what is not uploaded goes on."""
    with case.state() as (state, disk), state.daemon('--spool', 'all', *HTTP) as d, Client(d) as c:
        accepted = c.submit(1)
        disk.fails(errno.EDQUOT, OPEN)
        c.upload(accepted, [field()])
        told = page_when(d, '/readyz', 503)
        assert 'uploads cannot be written' in told and 'Disk quota exceeded' in told, told
        assert d.status().trouble == told.strip()
        refused = c.submit(1, expect='rejected')
        assert refused.status == STATUS['BUSY'] and refused.text == told.strip(), refused
        c.submit(1, source=qk.SOURCE_Z2, sink=qk.SINK_NONE)
        assert c.expect('result').request == 3
        assert d.log(r' error quarkd spool: uploads cannot be written')
        disk.works()
        assert c.expect('result').request == 1
        page_when(d, '/readyz', 200)
        assert not d.status().HasField('trouble')
