"""Part of test_front_state.py: a journal in a folder of its own (--journal), on another device than the state folder."""
import contextlib
import os
import shutil
import tempfile

import tap

try:
    import numpy as np
    from front_case import LATER, State, fake, field, kill
    from front_driver import STATUS, Client, qk
    from state_case import again, check, results_of
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

FILES = ('journal.db', 'journal.db-wal', 'journal.mark')
HOUR = 3600 * 1000


@contextlib.contextmanager
def apart(case):
    """A state folder, and a folder for its journal in memory, which is another device where the other one is on a disk."""
    top = tempfile.mkdtemp(prefix='qk-journal-', dir='/dev/shm')
    try:
        with State(case) as state:
            yield state, os.path.join(top, 'journal')
    finally:
        shutil.rmtree(top)


def refused(case, state, *options):
    """What is said of a start that is a wrong configuration."""
    r = case.run('--mass', '0.1', '--gauge', 'fake', '--engine', '/bin/true', '--backend', 'cpu', '--listen', 'tcp://127.0.0.1:0', '--state', state.dir,
                 *options)
    assert r.returncode == 78, (r.returncode, r.stderr)
    return r.stderr


def there(folder):
    return [name for name in FILES if os.path.exists(os.path.join(folder, name))]


@tap.test
def a_journal_may_be_on_another_device(case):
    """All goes on after a kill, and after the end of the machine; the state folder itself has none."""
    with apart(case) as (state, journal):
        b = [field(), field()]
        with state.daemon('--journal', journal) as d, Client(d) as c:
            c.upload(c.submit(2, detach_ms=HOUR), b)
            check(c, c.results(2), b)
            d.log('is on the disk', 2)
            c.ping()
            kill(d)
        assert there(journal) and not there(state.dir) and len(state.spool()) == 2
        state.end_the_machine()
        with state.daemon('--journal', journal, env=LATER) as d:
            c, _ = again(d, c, 2, detach_ms=HOUR)
            check(c, results_of(c, 1, 2), b)
            c.ack(1)
            d.status_when(lambda s: s.counters.requests == 0 and not state.spool())
            c.close()
            assert d.terminate() == 0


@tap.test
def a_journal_that_was_forgotten_or_exchanged_is_missed(case):
    """Nothing is begun anew, and nothing in the spool is touched."""
    with apart(case) as (state, journal), State(case) as other:
        with state.daemon('--journal', journal) as d, Client(d) as c:
            c.upload(c.submit(1, max_iter=fake.HOLD, detach_ms=HOUR), [field()])
            d.log('is on the disk')
            kill(d)
        with other.daemon() as d:
            assert d.terminate() == 0
        assert journal in refused(case, state) and '--journal' in refused(case, state)
        empty = journal + '.empty'
        for wrong in (empty, other.dir):
            text = refused(case, state, '--journal', wrong)
            assert 'is not the journal of' in text and journal in text, text
        text = refused(case, other, '--journal', journal)
        assert 'the journal is in the state folder' in text, text
        for name in FILES + ('journal.at',):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(other.dir, name))
        text = refused(case, other, '--journal', journal)
        assert 'belongs to the state folder' in text and state.dir in text, text
        with State(case) as third:
            text = refused(case, third, '--journal', state.dir)
            assert 'is a state folder itself' in text, text
        os.chmod(journal, 0o777)
        assert 'other users may write into it' in refused(case, state, '--journal', journal)
        os.chmod(journal, 0o700)
        assert state.spool() == ['1-0'], state.spool()
        moved = journal + '.moved'
        os.rename(journal, moved)
        with state.daemon('--journal', moved, env=LATER) as d, Client(d, c.client_id) as c:
            assert c.welcome.resumed and d.status().counters.requests == 1
            kill(d)


@tap.test
def a_journal_moves_there_and_back(case):
    with apart(case) as (state, journal):
        with state.daemon() as d, Client(d) as c:
            c.submit(1, source=qk.SOURCE_Z2, max_iter=fake.HOLD, detach_ms=HOUR)
            kill(d)
        text = refused(case, state, '--journal', journal)
        assert 'the journal is in the state folder' in text and 'journal.mark' in text, text
        for name in there(state.dir):
            shutil.move(os.path.join(state.dir, name), os.path.join(journal, name))
        with state.daemon('--journal', journal, env=LATER) as d, Client(d, c.client_id) as c:
            assert c.welcome.resumed and d.status().counters.requests == 1
            kill(d)
        for name in there(journal):
            shutil.move(os.path.join(journal, name), os.path.join(state.dir, name))
        os.unlink(os.path.join(state.dir, 'journal.at'))
        with state.daemon('--journal', state.dir, env=LATER) as d, Client(d, c.client_id) as c:  # which is as without it
            assert c.welcome.resumed and d.status().counters.requests == 1
            kill(d)


@tap.test
def a_journal_that_goes_is_trouble_until_it_is_back(case):
    """Either folder."""
    with apart(case) as (state, journal), state.daemon('--journal', journal) as d, Client(d) as c:
        for folder in (journal, state.dir):
            os.rename(folder, folder + '.away')
            refusal = c.submit(1, source=qk.SOURCE_Z2, expect='rejected')
            assert refusal.status == STATUS['BUSY'] and folder in refusal.text, refusal
            os.rename(folder + '.away', folder)
            d.status_when(lambda s: not s.HasField('trouble'))
        b = field()
        (r, x), = c.solve([b])
        assert r.status == 0 and np.array_equal(x, 2 * b)


@tap.test
def a_damaged_journal_is_set_aside_from_another_device(case):
    with apart(case) as (state, journal):
        with state.daemon('--journal', journal) as d:
            assert d.terminate() == 0
        with open(os.path.join(journal, 'journal.db'), 'r+b') as f:
            f.write(b'\xa5' * 4096)
        with state.daemon('--journal', journal) as d, Client(d) as c:
            b = field()
            (r, x), = c.solve([b])
            assert r.status == 0 and np.array_equal(x, 2 * b)
            assert 'aside-1' in d.status().set_aside
        with open(os.path.join(state.dir, 'aside-1', 'journal.db'), 'rb') as f:
            assert f.read(4096) == b'\xa5' * 4096
