"""Vectors that clients send from memory (FIELD_VECTORS): made, their digest, sent."""
import numpy as np
from field_links import _seeded
from front_driver import qk


def orthonormal(dims, count, seed):
    """Vectors [t][n][z][y][x][colour] that are orthonormal on each time slice."""
    x, y, z, t = dims
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((t, 3 * x * y * z, count, 2)).view(complex)[..., 0]
    return np.ascontiguousarray(np.linalg.qr(a)[0].transpose(0, 2, 1)).reshape(t, count, z, y, x, 3)


def as_seen(v, single):
    return np.ascontiguousarray(v, np.complex64 if single else complex).astype(complex)


def vectors_digest(v):
    """Of vectors as doubles."""
    sites = np.ascontiguousarray(v, complex).reshape(-1, 3)
    return sum(_seeded(s.tobytes(), 48, n) for n, s in enumerate(sites)) % 2**64


def open_vectors(client, v, single=False, expect='accepted', request=None, **more):
    """FIELD_OPEN of these vectors; nothing is sent yet."""
    if request is None:
        client.request += 1
        request = client.request
    t, count, z, y, x = v.shape[:5]
    client.send(field_open=qk.FieldOpen(**{'request': request, 'kind': qk.FIELD_VECTORS, 'dims': [x, y, z, t], 'count': count,
                                           'dtype': qk.DTYPE_F32 if single else qk.DTYPE_F64, **more}))
    return client.expect(expect) if expect else None


def send_vectors(client, v, single=False, **more):
    """The RESULT of vectors that are sent."""
    accepted = open_vectors(client, v, single, **more)
    client.upload(accepted, [np.ascontiguousarray(v, np.complex64 if single else complex).view(np.uint8).ravel()])
    return client.expect('result')
