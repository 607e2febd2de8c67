"""A client of quarkd's local socket: fields by descriptor."""
import array
import fcntl
import mmap
import os
import socket

import numpy as np

from engine_driver import qk
from front_driver import TIMEOUT, checksum

SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


def memfd(data, seals=SEALS):
    fd = os.memfd_create('test', os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


class Local:
    """The third connection of a client."""

    def __init__(self, client, bind=True, path=None):
        self.client = client
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect(path or client.welcome.local_path)
        if bind:
            self.send(bind=qk.LocalBind(client_id=client.client_id, token=client.welcome.token))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, fds=(), **body):
        self.send_bytes(qk.LocalRequest(**body).SerializeToString(), fds)

    def send_bytes(self, data, fds=()):
        self.socket.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else [])

    def put(self, request, rhs, data, fd=None, offset=0, **wrong):
        own = memfd(data) if fd is None else fd
        self.send([own], put=qk.LocalPut(**{**dict(request=request, rhs=rhs, offset=offset, checksum=checksum(data)), **wrong}))
        if fd is None:
            os.close(own)

    def fetch(self, result, dtype=np.complex128):
        """The solution; None where the daemon has none to give."""
        self.send(fetch=qk.LocalFetch(request=result.request, rhs=result.rhs))
        data, fds, _, _ = socket.recv_fds(self.socket, 256, 4)
        m = qk.LocalSolution.FromString(data)
        assert (m.request, m.rhs) == (result.request, result.rhs)
        if m.bytes == 0:
            assert not fds
            return None
        fd, = fds
        try:
            assert os.fstat(fd).st_size == m.bytes and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
            try:
                mmap.mmap(fd, m.bytes, prot=mmap.PROT_WRITE)
                raise AssertionError('a solution can be written to')
            except PermissionError:
                pass
            with mmap.mmap(fd, m.bytes, prot=mmap.PROT_READ) as x:
                return np.frombuffer(bytes(x), dtype)
        finally:
            os.close(fd)

    def is_closed(self):
        try:
            return self.socket.recv(256) == b''
        except ConnectionResetError:
            return True
