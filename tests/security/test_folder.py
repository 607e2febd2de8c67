#!/usr/bin/env python3
"""The folder of the state: who else may write there, or has done so before, and who can read it: test_folder.py QUARKD"""
import os
import re
import sys
import tempfile

import tap

try:
    from front_case import LATER, Case, State, fake, field, kill
    from front_driver import Client
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


def refused(case, state, *said):
    """With an end that a restart does not mend, and what is wrong."""
    r = case.run('--mass', '0.1', '--gauge', 'fake', '--engine', '/bin/true', '--listen', 'tcp://127.0.0.1:0', '--state', state)
    assert r.returncode == 78, (r.returncode, r.stderr)
    for pattern in said:
        assert re.search(pattern, r.stderr), (pattern, r.stderr)


@tap.test
def a_folder_that_others_can_write_into_is_refused(case):
    with tempfile.TemporaryDirectory(prefix='qk-state-') as folder:
        spool = os.path.join(folder, 'spool')
        for mode in (0o770, 0o707, 0o1777, 0o2775):
            os.chmod(folder, mode)
            refused(case, folder, r'state = %s: other users may write into it \(mode %04o\): chmod go-w' % (re.escape(folder), mode))
            assert os.listdir(folder) == []
        os.chmod(folder, 0o755)
        os.mkdir(spool)
        os.chmod(spool, 0o777)
        refused(case, folder, spool + ': other users may write into it')
        os.rmdir(spool)
        os.symlink('/tmp', spool)
        refused(case, folder, spool + ' is not a folder')
        if os.geteuid() != 0:
            raise tap.Skip('no right to give folders away')
        os.unlink(spool)
        os.chown(folder, 12345, -1)
        refused(case, folder, 'belongs to user 12345, but quarkd runs as user 0: choose a folder of that user')
        os.chown(folder, 0, -1)


@tap.test
def files_that_others_have_prepared_are_not_touched(case):
    """Links of either kind to a file of ours, what is no file, and what belongs to others, where quarkd would write."""
    with tempfile.TemporaryDirectory(prefix='qk-state-') as folder:
        precious = os.path.join(folder, 'precious')
        state = os.path.join(folder, 'state')
        os.mkdir(state, 0o700)
        with open(precious, 'w', encoding='utf-8') as f:
            f.write('mine')
        os.chmod(precious, 0o640)
        for name in ('lock', 'journal.db', 'journal.db-wal', 'journal.db-journal'):
            path = os.path.join(state, name)
            for plant, fault in ((os.symlink, 'a symbolic link'), (os.link, 'a second name')):
                plant(precious, path)
                refused(case, state, re.escape(path) + ': it (is|has) %s.*, so quarkd did not create it' % fault)
                os.unlink(path)
                assert open(precious, encoding='utf-8').read() == 'mine' and os.stat(precious).st_mode & 0o777 == 0o640
            os.mkfifo(path)
            refused(case, state, re.escape(path) + ': it is not a regular file')
            os.unlink(path)
            if os.geteuid() == 0:
                with open(path, 'w', encoding='utf-8') as f:
                    f.write('theirs')
                os.chown(path, 12345, -1)
                refused(case, state, re.escape(path) + ': it belongs to another user')
                assert open(path, encoding='utf-8').read() == 'theirs'
                os.unlink(path)
        if os.geteuid() != 0:
            raise tap.Skip('no right to give files away; links were refused')


@tap.test
def the_spool_does_not_write_through_links(case):
    with State(case) as state:
        with state.daemon() as d:
            assert d.terminate() == 0
        precious = os.path.join(state.dir, 'precious')
        with open(precious, 'w', encoding='utf-8') as f:
            f.write('mine')
        for i, plant in enumerate((os.symlink, os.link)):
            plant(precious, os.path.join(state.dir, 'spool', 'x'))
            os.rename(os.path.join(state.dir, 'spool', 'x'), os.path.join(state.dir, 'spool', 'kept-%d' % i))
        with state.daemon() as d, Client(d) as c:
            for i in range(2):
                os.rename(os.path.join(state.dir, 'spool', 'kept-%d' % i), os.path.join(state.dir, 'spool', '1-%d' % i))
            fields = [field() for _ in range(2)]
            c.upload(c.submit(2, max_iter=fake.HOLD), fields)
            d.log('is on the disk', 2)
            kill(d)
        assert open(precious, encoding='utf-8').read() == 'mine'
        with state.daemon(env=LATER) as d:
            assert state.spool() == ['1-0', '1-1']


@tap.test
def what_is_in_the_folder_others_cannot_read(case):
    """Client ids are the keys to sessions where there are no others. Files of an older quarkd are closed."""
    with State(case) as state:
        os.chmod(state.dir, 0o755)
        path = os.path.join(state.dir, 'journal.db')
        for mode in (None, 0o644):
            if mode:
                os.chmod(path, mode)
            with state.daemon() as d, Client(d) as c:
                c.upload(c.submit(1, max_iter=fake.HOLD), [field()])
                d.log('is on the disk')
                for folder, _, names in os.walk(state.dir):
                    for name in names:
                        assert os.stat(os.path.join(folder, name)).st_mode & 0o077 == 0, (folder, name)
                assert os.stat(os.path.join(state.dir, 'spool')).st_mode & 0o777 == 0o700
                kill(d)


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]), beside=4)
