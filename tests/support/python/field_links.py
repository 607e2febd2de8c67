"""Links and clover terms that clients send from memory (FIELD_OPEN): made, in wire order, their digest."""
import ctypes

import numpy as np
from front_driver import qk

_seeded = ctypes.CDLL('libxxhash.so.0').XXH3_64bits_withSeed
_seeded.restype = ctypes.c_uint64
_seeded.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]


def noisy(dims, seed, size=0.2):
    """SU(3) links [t][z][y][x][mu][row][column] near 1."""
    rng = np.random.default_rng(seed)
    a = size * rng.standard_normal((*dims[::-1], 4, 3, 3, 2)).view(complex)[..., 0] + np.eye(3)
    q, r = np.linalg.qr(a)
    d = np.einsum('...ii->...i', r)
    q = q * (d / abs(d))[..., None, :]
    return q / np.linalg.det(q)[..., None, None] ** (1 / 3)


def digest(links):
    """Of links as doubles, in wire order."""
    sites = np.ascontiguousarray(links, complex).reshape(-1, 36)
    return sum(_seeded(s.tobytes(), 576, n) for n, s in enumerate(sites)) % 2**64


def noisy_term(dims, seed, size=0.3):
    """A clover term [t][z][y][x][72] near 4."""
    rng = np.random.default_rng(seed)
    term = size * rng.standard_normal((*dims[::-1], 2, 36))
    term[..., :6] += 4
    return term.reshape(*dims[::-1], 72)


def packed(blocks):
    """The same of hermitian matrices [t][z][y][x][2][6][6]."""
    rows, columns = zip(*((i, j) for j in range(6) for i in range(j + 1, 6)))
    below = np.ascontiguousarray(blocks[..., rows, columns], complex).view(float)
    return np.concatenate([np.einsum('...ii->...i', blocks).real, below], -1).reshape(*blocks.shape[:4], 72)


def blocks_of(term):
    """The matrices of a clover term."""
    t = term.reshape(*term.shape[:4], 2, 36)
    m = np.zeros((*t.shape[:5], 6, 6), complex)
    below = np.ascontiguousarray(t[..., 6:]).view(complex)
    for k, (i, j) in enumerate((i, j) for j in range(6) for i in range(j + 1, 6)):
        m[..., i, j] = below[..., k]
        m[..., j, i] = below[..., k].conj()
    for i in range(6):
        m[..., i, i] = t[..., i]
    return m


def term_digest(term):
    return digest(np.ascontiguousarray(term, float).view(complex))


def send_term(client, term, single=False, expect='accepted', **more):
    """The RESULT of a clover term that is sent; expect 'rejected': that answer."""
    client.request += 1
    dims, real = list(term.shape[3::-1]), np.float32 if single else np.float64
    client.send(field_open=qk.FieldOpen(**{'request': client.request, 'kind': qk.FIELD_CLOVER, 'dims': dims,
                                           'dtype': qk.DTYPE_F32 if single else qk.DTYPE_F64, **more}))
    answer = client.expect(expect)
    if expect == 'accepted' and answer.upload_until > 0:
        client.upload(answer, [np.ascontiguousarray(term, real).view(np.uint8).ravel()])
    return client.expect('result') if expect == 'accepted' else answer


def bytes_of(links, single=False, reals=18):
    out = links if reals == 18 else links[..., :2, :]
    return np.ascontiguousarray(out, np.complex64 if single else complex).tobytes()


def widened(links, single=False, reals=18):
    """As the daemon sees them."""
    u = links.astype(np.complex64).astype(complex) if single else links.copy()
    for j in range(3 if reals == 12 else 0):  # in real numbers: products of complex ones may be rounded otherwise
        a1, a2, b1, b2 = (u[..., r, (j + k) % 3] for r in (0, 1) for k in (1, 2))
        u[..., 2, j] = ((a1.real * b2.real - a1.imag * b2.imag) - (a2.real * b1.real - a2.imag * b1.imag)
                        - 1j * ((a1.real * b2.imag + a1.imag * b2.real) - (a2.real * b1.imag + a2.imag * b1.real)))
    return u


def open_field(client, links, single=False, reals=18, expect='accepted', request=None, **more):
    """FIELD_OPEN of these links; nothing is sent yet."""
    if request is None:
        client.request += 1
        request = client.request
    dims = list(links.shape[3::-1])
    client.send(field_open=qk.FieldOpen(**{'request': request, 'kind': qk.FIELD_GAUGE, 'dims': dims, 'reals': reals,
                                           'dtype': qk.DTYPE_F32 if single else qk.DTYPE_F64, **more}))
    return client.expect(expect)


def send(client, links, single=False, reals=18, **more):
    """The RESULT of links that are sent."""
    accepted = open_field(client, links, single, reals, **more)
    client.upload(accepted, [np.frombuffer(bytes_of(links, single, reals), np.uint8)])
    return client.expect('result')
