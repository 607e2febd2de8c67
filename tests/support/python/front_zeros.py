"""Uploads with runs of zeros, and fields to be sent so."""
import fcntl
import os

import numpy as np

from front_driver import MIB, UPLOAD, UPLOAD_ZERO, block_checksum, checksum, frame
from front_local import SEALS


def zeros(request, rhs, count, field_bytes, offset, field_checksum=0, blocks=False, **wrong):
    """The message for so many zero bytes."""
    return frame(UPLOAD_ZERO, request, rhs, b'', field_bytes, offset, field_checksum,
                 **{**dict(version=1 + blocks, chunk_bytes=count, chunk_checksum=0), **wrong})


def runs(data, least):
    """[(begin, end)] of runs of at least so many zero bytes."""
    filled = np.flatnonzero(np.frombuffer(data, np.uint8))
    begin, end = np.concatenate(([0], filled + 1)), np.concatenate((filled, [len(data)]))
    long = end - begin >= least
    return list(zip(begin[long].tolist(), end[long].tolist()))


def pieces(data, least, chunk=MIB):
    """[(offset, bytes, whether they are a run)] of a field."""
    out, at = [], 0
    for begin, end in runs(data, least) + [(len(data), len(data))]:
        out += [(k, min(chunk, begin - k), False) for k in range(at, begin, chunk)]
        out += [(begin, end - begin, True)] if end > begin else []
        at = end
    return out


def message(client, request, rhs, data, offset, count, is_run):
    last = 0
    if offset + count == len(data):
        last = (block_checksum if client.blocks else checksum)(data)
    if is_run:
        return zeros(request, rhs, count, len(data), offset, last, client.blocks)
    return frame(UPLOAD, request, rhs, data[offset:offset + count], len(data), offset, last, version=1 + client.blocks)


def upload(client, accepted, fields, least=4096, chunk=MIB, begin=0):
    """All fields, under the credit that comes; runs need none. The bytes that went as chunks."""
    until, sent = accepted.upload_until, 0
    for rhs, data in enumerate(f.tobytes() for f in fields):
        assert len(data) == accepted.field_bytes
        for offset, count, is_run in pieces(data, least, chunk):
            end = rhs * len(data) + offset + count
            if end <= begin:
                continue
            while end > until and not is_run:
                name, body = client.receive_new()
                if name == 'credit':
                    until = body.until
                else:
                    client.later.append((name, body))
            client.data.send(message(client, accepted.request, rhs, data, offset, count, is_run))
            sent += 0 if is_run else count
    return sent


def sparse_memfd(data, offset=0, page=4096):
    """A sealed one with the bytes from there on, in which pages of zeros are holes."""
    fd = os.memfd_create('test', os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, offset + len(data))
    for at in range(0, len(data), page):
        if any(data[at:at + page]):
            os.pwrite(fd, data[at:at + page], offset + at)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
    return fd


def put(local, request, rhs, data, offset=0, **wrong):
    """A sparse put."""
    fd = sparse_memfd(data, offset)
    local.put(request, rhs, data, fd, offset, **{**dict(sparse=True, checksum=block_checksum(data)), **wrong})
    os.close(fd)
