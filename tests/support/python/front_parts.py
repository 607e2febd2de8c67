"""Clients that have parts of a request: cut, joined, sent, put together."""
import numpy as np

from front_driver import MIB, qk


def extents(dims, grid):
    return [d // g for d, g in zip(dims, grid)]


def place(dims, grid, part):
    """The slices [t][z][y][x] of a part."""
    out = []
    for d, g in zip(dims, grid):
        out.append(slice(part % g * (d // g), (part % g + 1) * (d // g)))
        part //= g
    return tuple(out[::-1])


def cut(a, grid, part, axis=0):
    """A part of an array [t][z][y][x]..., behind `axis` other axes."""
    dims = a.shape[axis:axis + 4][::-1]
    return np.ascontiguousarray(a[(slice(None),) * axis + place(dims, grid, part)])


def pasted(parts, grid, axis=0):
    """The whole array of all its parts, in order."""
    local = parts[0].shape[axis:axis + 4]
    shape = parts[0].shape[:axis] + tuple(n * g for n, g in zip(local, grid[::-1])) + parts[0].shape[axis + 4:]
    out = np.empty(shape, parts[0].dtype)
    for p, a in enumerate(parts):
        out[(slice(None),) * axis + place(shape[axis:axis + 4][::-1], grid, p)] = a
    return out


def answer(client, expect='accepted'):
    """The next message but for results, which are for later."""
    while True:
        name, body = client.receive_new()
        if name == expect:
            return body
        assert name in ('result', 'progress', 'credit'), 'got %s instead of %s: %s' % (name, expect, body)
        client.later.append((name, body))


def join(client, whose, accepted, part, expect='accepted', request=None, **wrong):
    """The answer to JOIN; whose: the client whose request was accepted."""
    if request is None:
        client.request += 1
        request = client.request
    client.send(join=qk.Join(**{**dict(request=request, owner=whose.client_id, owner_request=accepted.request, token=accepted.join, part=part), **wrong}))
    return answer(client, expect)


def feed(client, accepted, fields, chunk=MIB):
    """What of the parts of all right-hand sides is not there yet."""
    client.upload(accepted, [np.frombuffer(np.ascontiguousarray(f).tobytes(), np.uint8) for f in fields], chunk, begin=accepted.upload_next)


def settled(daemon):
    """Memory is as it was at first."""
    daemon.status_when(lambda s: s.memory_used == 0 and s.counters.kept_bytes == 0)
