"""A state folder on a disk that a test breaks while quarkd runs (disk_shim.c)."""
import contextlib
import ctypes
import http.client
import os
import subprocess
import time

import tap
from disk import Disk, preloaded
from front_case import Case, State

CLONE_NEWNS = 0x20000


class DiskCase(Case):
    def __init__(self, binary, shim):
        super().__init__(binary)
        self.shim = preloaded(shim, binary)

    @contextlib.contextmanager
    def state(self):
        """A state folder, and its disk; daemons that `state.daemon` starts see it."""
        with State(self) as state:
            # below a folder that stays, so that it can go and come back
            state.dir = os.path.join(state.dir, 'state')
            os.mkdir(state.dir, 0o700)
            disk = Disk(self.shim, state.dir)
            plain = state.daemon
            state.daemon = lambda *options, **more: plain(*options, **{**more, 'env': {**disk.env, **more.get('env', {})}})
            try:
                yield state, disk
            finally:
                disk.works()
                disk.spares()
                state.end_the_machine()
                state.dir = os.path.dirname(state.dir)
                disk.file.close()


def mount(*words):
    """Skips where that is not allowed."""
    done = subprocess.run(['mount', *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise tap.Skip(done.stderr.strip() or 'no mount')


def unmount(folder):
    """Though files of it are open."""
    subprocess.run(['umount', '-l', folder], check=True)


@contextlib.contextmanager
def twice_mounted(folder, store):
    """A small file system that can go from the folder and come back, being mounted elsewhere, too; for this process and its children alone."""
    libc = ctypes.CDLL('libc.so.6', use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise tap.Skip('no mounts of its own: ' + os.strerror(ctypes.get_errno()))
    mount('--make-rprivate', '/')
    os.mkdir(store)
    mount('-t', 'tmpfs', '-o', 'size=16m,mode=700', 'none', store)
    try:
        mount('--bind', store, folder)
        yield
        unmount(folder)
    finally:
        unmount(store)
        os.rmdir(store)


def page(daemon, path):
    """Status and text of a page over HTTP."""
    connection = http.client.HTTPConnection('127.0.0.1', int(daemon.log(r'over HTTP on 127\.0\.0\.1:(\d+)')[1]), timeout=30)
    connection.request('GET', path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def page_when(daemon, path, status):
    """The text of the page once it has that status."""
    while True:
        now, text = page(daemon, path)
        if now == status:
            return text
        time.sleep(0.02)


def end(daemon):
    """Killed, as by the kernel."""
    daemon.process.kill()
    daemon.process.wait()


def hears_nothing_but_pongs(client, rounds=3):
    """What is not in the journal is not told; the client is heard all the same."""
    for _ in range(rounds):
        client.ping()
        heard = [name for name, _ in client.later if name in ('accepted', 'credit', 'result', 'attached')]
        assert not heard, client.later
