"""Reference Wilson-clover Dirac operator and gauge-file readers (numpy/scipy, double precision).

An oracle, written for clarity: every formula below is spelled out, nothing is tuned.

Conventions
  Links     U[mu, t, z, y, x, a, b], mu = 0,1,2,3 = x,y,z,t; U[mu](n) joins n to n+mu^.
  Spinors   psi[t, z, y, x, s, c]; flat index = C order (x is the fastest site coordinate).
  Gammas    DeGrand-Rossi (the basis of QDP++/Chroma, Grid and QUDA):
            gamma_mu = [[0, B_mu], [B_mu^+, 0]], gamma_5 = gx gy gz gt = diag(+1,+1,-1,-1).
  Operator  M psi(n) = (4 + m) psi(n)
                       - 1/2 sum_mu [ (1 - g_mu) U_mu(n)         psi(n + mu)
                                    + (1 + g_mu) U_mu(n - mu)^+  psi(n - mu) ]
                       - csw/2 sum_{mu<nu} g_mu g_nu Fhat_{mu nu}(n) psi(n)
            Fhat = (Q - Q^+)/8, Q_{mu nu} = the four plaquettes ("clover leaves") around n that
            turn from +mu to +nu.  The last term equals + csw * (i/4) sigma_{mu nu} Fhat_{mu nu}
            summed over all mu, nu, with sigma = (i/2)[g_mu, g_nu].
            kappa = 1 / (2 (4 + m)).  The kappa-normalised operator 1 - kappa H + ... is 2 kappa M.
  Boundary  bc = (bx, by, bz, bt): the factor a fermion field picks up when it crosses the edge
            of the lattice; (1,1,1,1) periodic, (1,1,1,-1) antiperiodic in time.
            Fhat is always made of the links without these factors.
"""
import inspect
import re
import struct
import numpy as np
from scipy.sparse.linalg import LinearOperator, bicgstab, gmres

ND, NS, NC = 4, 4, 3
PERIODIC, ANTIPERIODIC = (1, 1, 1, 1), (1, 1, 1, -1)
AXIS = (3, 2, 1, 0)                    # array axis (of t,z,y,x) along which direction mu runs

# upper right 2x2 block of each gamma; the lower left block is its hermitian conjugate
B = np.array([[[0, 1j], [1j, 0]], [[0, -1], [1, 0]], [[1j, 0], [0, -1j]], [[1, 0], [0, 1]]], complex)
GAMMA = np.zeros((4, 4, 4), complex)
for _m in range(4):
    GAMMA[_m, :2, 2:], GAMMA[_m, 2:, :2] = B[_m], B[_m].conj().T
GAMMA5 = GAMMA[0] @ GAMMA[1] @ GAMMA[2] @ GAMMA[3]


# ---------------------------------------------------------------- gauge configuration files
def _third_row(u):
    """Complete two stored rows (..., 2, 3) to SU(3): row3 = conj(row1 x row2)."""
    r3 = np.conj(np.cross(u[..., 0, :], u[..., 1, :]))
    return np.concatenate([u, r3[..., None, :]], axis=-2)


def _site_major(flat, dims, rows=3):
    """Array in file order (site with x fastest, mu, row, column) -> U[mu,t,z,y,x,a,b]."""
    nx, ny, nz, nt = dims
    u = np.asarray(flat).reshape(nt, nz, ny, nx, ND, rows, NC)
    return np.ascontiguousarray(np.moveaxis(u, 4, 0)).astype(np.complex128)


def load_ddalphaamg(path):
    """DDalphaAMG: int32 T,Z,Y,X; double plaquette (of 3); then t,z,y,x sites, mu = T,Z,Y,X."""
    raw = open(path, 'rb').read()
    nt, nz, ny, nx = struct.unpack('<4i', raw[:16])
    plaq, = struct.unpack('<d', raw[16:24])
    u = np.frombuffer(raw, '<c16', offset=24).reshape(nt, nz, ny, nx, ND, NC, NC)
    return np.ascontiguousarray(np.moveaxis(u, 4, 0)[::-1]), {'format': 'DDalphaAMG', 'plaquette': plaq / 3}


def load_openqcd(path):
    """openQCD export: int32 N0,N1,N2,N3 = T,X,Y,Z; double plaquette (of 3); then for every odd
    site (z fastest, then y, x, t) U(n,+0),U(n-0,0),U(n,+1),U(n-1,1),... with 0,1,2,3 = t,x,y,z."""
    raw = open(path, 'rb').read()
    n = struct.unpack('<4i', raw[:16])                      # T, X, Y, Z
    plaq, = struct.unpack('<d', raw[16:24])
    data = np.frombuffer(raw, '<c16', offset=24).reshape(-1, 8, NC, NC)
    c = np.indices(n).reshape(4, -1)                        # t,x,y,z; last fastest
    odd = c[:, c.sum(0) % 2 == 1]
    u = np.zeros((ND,) + n + (NC, NC), complex)             # [mu as t,x,y,z][t][x][y][z]
    for k in range(ND):
        u[(k,) + tuple(odd)] = data[:, 2 * k]
        back = odd.copy()
        back[k] = (back[k] - 1) % n[k]
        u[(k,) + tuple(back)] = data[:, 2 * k + 1]
    u = u[[1, 2, 3, 0]].transpose(0, 1, 4, 3, 2, 5, 6)      # mu -> x,y,z,t; sites -> t,z,y,x
    return np.ascontiguousarray(u), {'format': 'openQCD', 'plaquette': plaq / 3}


def load_milc(path):
    """MILC v5 (magic 20103): int32 magic, dims x,y,z,t; 64 byte date; int32 order; two checksums;
    single precision 3x3, site (x fastest), mu = x,y,z,t.  Either byte order."""
    raw = open(path, 'rb').read()
    for e in '<>':
        magic, *dims = struct.unpack(e + '5i', raw[:20])
        if magic == 20103:
            break
    else:
        raise ValueError('not a MILC v5 file: ' + path)
    order, s29, s31 = struct.unpack(e + 'iII', raw[84:96])
    if order:
        raise ValueError('only natural order is read')
    u = _site_major(np.frombuffer(raw, e + 'c8', offset=96), dims)
    words = np.frombuffer(raw, e + 'u4', offset=96)
    i = np.arange(words.size).astype(np.uint64)
    w = words.astype(np.uint64)
    rot = lambda r: np.bitwise_xor.reduce((w << i % r | w >> 32 - i % r) & 0xFFFFFFFF)
    ok = (rot(29) == s29, rot(31) == s31)
    return u, {'format': 'MILC v5', 'date': raw[20:84].split(b'\0')[0].decode().strip(), 'checksum_ok': bool(all(ok))}


def load_nersc(path):
    """NERSC archive, 4D_SU3_GAUGE (two rows) or 4D_SU3_GAUGE_3x3; IEEE32/IEEE64, BIG/LITTLE."""
    raw = open(path, 'rb').read()
    end = raw.index(b'END_HEADER')
    body = raw[raw.index(b'\n', end) + 1:]
    h = dict((k.strip(), v.strip()) for k, v in
             (ln.split('=', 1) for ln in raw[:end].decode().splitlines() if '=' in ln))
    dims = [int(h['DIMENSION_%d' % i]) for i in (1, 2, 3, 4)]
    fp = h['FLOATING_POINT']
    e = '<' if 'LITTLE' in fp else '>'                      # plain IEEE32 means big endian
    rows = 3 if h['DATATYPE'].endswith('3x3') else 2
    u = _site_major(np.frombuffer(body, e + ('c16' if '64' in fp else 'c8')), dims, rows)
    ck = int(np.frombuffer(body, e + 'u4').astype(np.uint64).sum() % 2**32)
    return (_third_row(u) if rows == 2 else u), {
        'format': 'NERSC ' + h['DATATYPE'] + ' ' + fp, 'plaquette': float(h['PLAQUETTE']),
        'link_trace': float(h['LINK_TRACE']), 'checksum_ok': ck == int(h['CHECKSUM'], 16)}


def lime_records(path):
    """List of (type, bytes) of a LIME file: 144 byte headers, payload padded to 8 bytes."""
    raw, pos, out = open(path, 'rb').read(), 0, []
    while pos + 144 <= len(raw):
        magic, _, _, n = struct.unpack('>IHHQ', raw[pos:pos + 16])
        if magic != 0x456789AB:
            raise ValueError('bad LIME magic in ' + path)
        out.append((raw[pos + 16:pos + 144].split(b'\0')[0].decode(), raw[pos + 144:pos + 144 + n]))
        pos += 144 + (n + 7) // 8 * 8
    return out


def load_lime(path, dims=None):
    """ILDG (ildg-format + ildg-binary-data) or SciDAC (scidac-binary-data) gauge file.
    Big endian, site (x fastest), mu = x,y,z,t, row major 3x3.  Some writers leave out the
    ildg-format record: then dims = (x,y,z,t) must be given, or the lattice is taken as L^4 double."""
    rec = lime_records(path)
    text = {t: d.decode(errors='replace') for t, d in rec if not t.endswith('binary-data')}
    t, data = [(t, d) for t, d in rec if t in ('ildg-binary-data', 'scidac-binary-data')][0]
    tag = lambda s, k: re.search(r'<%s>\s*([^<]*?)\s*</%s>' % (k, k), s)
    if 'ildg-format' in text:
        f = text['ildg-format']
        dims = [int(tag(f, k).group(1)) for k in ('lx', 'ly', 'lz', 'lt')]
    elif 'scidac-private-file-xml' in text:
        dims = [int(i) for i in tag(text['scidac-private-file-xml'], 'dims').group(1).split()]
    dims = dims or [round((len(data) / 576) ** 0.25)] * 4
    v = int(np.prod(dims))
    c = {v * ND * 9 * 8: '>c8', v * ND * 9 * 16: '>c16'}[len(data)]
    info = {'format': 'LIME/%s %s' % (t.split('-')[0].upper(), 'F' if c == '>c8' else 'D')}
    for s in text.values():
        for k in ('w_plaq', 'plaquette', 'plaq'):
            m = tag(s, k)
            if m:
                info['plaquette'] = float(m.group(1))
        m = re.search(r'plaquette\s*=\s*([-0-9.eE+]+)', s)   # tmLQCD xlf-info
        if m:
            info['plaquette'] = float(m.group(1))
    return _site_major(np.frombuffer(data, c), dims), info


def load_raw(path, dims, dtype='>c16'):
    """No header: site (x fastest), mu = x,y,z,t, row major 3x3."""
    return _site_major(np.fromfile(path, dtype), dims), {'format': 'raw ' + dtype}


def load_any(path):
    """Recognise the format by its first bytes."""
    head = open(path, 'rb').read(32)
    if head[:4] == b'\x45\x67\x89\xab':
        return load_lime(path)
    if b'BEGIN_HEADER' in head:
        return load_nersc(path)
    if 20103 in struct.unpack('<i', head[:4]) + struct.unpack('>i', head[:4]):
        return load_milc(path)
    # openQCD and DDalphaAMG share the header: the right reading is the one that gives its plaquette
    size = len(open(path, 'rb').read())
    if 24 + 576 * int(np.prod(struct.unpack('<4i', head[:16]), dtype=float)) != size:
        return load_raw(path, [round((size / 576) ** 0.25)] * 4)
    for f in (load_ddalphaamg, load_openqcd):
        u, info = f(path)
        if abs(plaquette(u) - info['plaquette']) < 1e-8:
            return u, info
    raise ValueError('header plaquette not reproduced: ' + path)


# ---------------------------------------------------------------- gauge field
def dag(u):
    return np.conj(np.swapaxes(u, -1, -2))


def shift(f, mu, sign=+1):
    """f(n) -> f(n + sign mu^) for a field with leading axes t,z,y,x."""
    return np.roll(f, -sign, axis=AXIS[mu])


def plaquettes(u):
    """Dictionary (mu,nu) -> average of Re tr P / 3 over the lattice."""
    out = {}
    for mu in range(ND):
        for nu in range(mu + 1, ND):
            p = u[mu] @ shift(u[nu], mu) @ dag(u[nu] @ shift(u[mu], nu))
            out[mu, nu] = np.trace(p, axis1=-2, axis2=-1).real.mean() / NC
    return out


def plaquette(u):
    """Average over the six planes, 1 for unit links."""
    return float(np.mean(list(plaquettes(u).values())))


def su3_deviation(u):
    """(max |U^+ U - 1|, max |det U - 1|)."""
    return (float(np.abs(dag(u) @ u - np.eye(NC)).max()), float(np.abs(np.linalg.det(u) - 1).max()))


def reunitarise(u):
    """Back to SU(3): Gram-Schmidt on rows 1 and 2, row 3 from their cross product."""
    a = u[..., 0, :] / np.linalg.norm(u[..., 0, :], axis=-1, keepdims=True)
    b = u[..., 1, :] - np.sum(a.conj() * u[..., 1, :], -1, keepdims=True) * a
    b = b / np.linalg.norm(b, axis=-1, keepdims=True)
    return _third_row(np.stack([a, b], axis=-2))


def gauge_rotate(u, g):
    """U_mu(n) -> g(n) U_mu(n) g(n+mu)^+."""
    return np.stack([g @ u[mu] @ dag(shift(g, mu)) for mu in range(ND)])


def field_strength(u):
    """Fhat[mu,nu] = (Q - Q^+)/8 for mu < nu (anti-hermitian; its trace is kept)."""
    f = {}
    for mu in range(ND):
        for nu in range(mu + 1, ND):
            um, un = u[mu], u[nu]
            p = um @ shift(un, mu) @ dag(un @ shift(um, nu))          # leaf of quadrant +mu +nu
            # the leaf at n-mu, n-nu, n-mu-nu is the same loop transported to n
            um_b, un_b = shift(um, mu, -1), shift(un, nu, -1)
            p_mu, p_nu = shift(p, mu, -1), shift(p, nu, -1)
            q = p + dag(um_b) @ p_mu @ um_b + dag(un_b) @ p_nu @ un_b
            w = shift(um_b, nu, -1) @ un_b                            # path n-mu-nu -> n-nu -> n
            q = q + dag(w) @ shift(p_mu, nu, -1) @ w
            f[mu, nu] = (q - dag(q)) / 8
    return f


# ---------------------------------------------------------------- Dirac operator
PLANES = (0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)                # xy, xz, yz, xt, yt, zt


def clover_term(u, csw, planes=(1,) * 6):
    """A[t,z,y,x,chirality,6,6]: the hermitian matrices -csw/2 sum planes[mu,nu] g_mu g_nu Fhat on (spin, colour)."""
    a = np.zeros(u.shape[1:5] + (2, 2, NC, 2, NC), complex)
    for (mu, nu), f in field_strength(u).items():
        s = -0.5 * csw * planes[PLANES.index((mu, nu))] * GAMMA[mu] @ GAMMA[nu]
        for ch in (0, 1):
            a[..., ch, :, :, :, :] += np.einsum('ij,...ab->...iajb', s[2*ch:2*ch+2, 2*ch:2*ch+2], f)
    return a.reshape(u.shape[1:5] + (2, 6, 6))


def matrix_exponential(a):
    """exp of hermitian matrices [..., n, n], by their eigenvectors."""
    w, v = np.linalg.eigh(a)
    return (v * np.exp(w)[..., None, :]) @ dag(v)


def inside(nt):
    """1 on the time slices where fields may be other than 0 if t has an open boundary, as factors of a field."""
    return np.array([0] + [1] * (nt - 2) + [0]).reshape(nt, 1, 1, 1, 1, 1)


class WilsonClover:
    """M for one gauge field; apply with apply_M or .apply / .matvec (flat vectors). hop: weights of the hops in x, y, z, t,
    whose sum is in place of 4; planes: factors of csw by plane; clover_links: where the clover term is made of others than u;
    twist: plus i twist gamma_5; exponential: T = a exp(C / a), a = 4 + m (arXiv:1911.04533), in place of a + C; open: c_F of openQCD's open boundary in t,
    M = P (T - 1/2 H) P + 1 - P, P the projector .inside on 0 < t < T-1, and a + c_F - 1 for a as a factor or summand of T,
    though not in the exponent, on t = 1 and T-2; 0: no such boundary."""

    def __init__(self, u, m, csw=0.0, bc=ANTIPERIODIC, hop=(1,) * 4, planes=(1,) * 6, clover_links=None, twist=0.0, exponential=False, open=0):
        self.twist = twist
        self.m, self.csw, self.bc, self.hop = m, csw, tuple(bc), tuple(hop)
        self.shape = u.shape[1:5] + (NS, NC)
        self.n = int(np.prod(self.shape))
        self.clover = clover_term(u if clover_links is None else clover_links, csw, planes) if csw else None
        self.exponential, self.inside = exponential, inside(self.shape[0]) if open else 1
        self.number = np.full((self.shape[0], 1, 1, 1, 1, 1), sum(hop) + m)
        if open:
            self.number[[1, -2]] += open - 1
        if exponential and csw:
            self.clover = matrix_exponential(self.clover / (sum(hop) + m))
        self.fwd, self.bwd = [], []
        for mu in range(ND):
            w = hop[mu] * u[mu]
            edge = [slice(None)] * 4
            edge[AXIS[mu]] = -1                                       # links that leave the lattice
            w[tuple(edge)] *= bc[mu]
            self.fwd.append(np.swapaxes(w, -1, -2).copy())            # transposed: acts from the right
            self.bwd.append(np.conj(shift(w, mu, -1)))                # (U^+)^T = conj(U)

    def local(self, psi):
        """T psi, the boundary aside."""
        number = self.number + 1j * self.twist * np.diag(GAMMA5)[:, None]
        if self.clover is None:
            return number * psi
        site = (self.clover @ psi.reshape(self.shape[:4] + (2, 6, 1))).reshape(self.shape)
        return self.number * site if self.exponential else number * psi + site

    def local_inverse(self, psi):
        """T^-1 psi, by the 12x12 matrices of T."""
        unit = np.eye(NS * NC).reshape(NS * NC, NS, NC)
        t = np.stack([self.local(np.broadcast_to(e, self.shape)).reshape(self.shape[:4] + (-1,)) for e in unit], -1)
        return np.linalg.solve(t, psi.reshape(self.shape[:4] + (-1, 1))).reshape(self.shape)

    def hops(self, psi):
        """H psi of M = T - H / 2, the open boundary aside."""
        psi = psi.reshape(self.shape)
        hop = np.zeros(self.shape, complex)
        for mu in range(ND):
            b, bd = B[mu], B[mu].conj().T
            for sign, link in ((-1, self.fwd[mu]), (+1, self.bwd[mu])):
                # (1 -+ g) psi = (h, -+ B^+ h) with h = upper -+ B lower
                p = shift(psi, mu, -sign)
                h = (p[..., :2, :] + sign * (b @ p[..., 2:, :])) @ link
                hop[..., :2, :] += h
                hop[..., 2:, :] += sign * (bd @ h)
        return hop

    def apply(self, psi):
        whole = psi.reshape(self.shape)
        psi = self.inside * whole
        return self.inside * (self.local(psi) - 0.5 * self.hops(psi)) + (1 - self.inside) * whole

    def matvec(self, v):
        return self.apply(v).ravel()

    def apply_dagger(self, psi):
        """M^+ = g5 M g5, with the other sign of the twist."""
        g5 = np.diag(GAMMA5).real[:, None]
        psi = psi.reshape(self.shape)
        return g5 * self.apply(g5 * psi) - 2j * self.twist * g5 * psi


def anisotropic(u, bc, mass, xi0, c_r, c_t, nu=1.0):
    """Edwards, Joo, Lin, arXiv:0803.3960: hops nu/xi0 in space, clover coefficients c_r/xi0 in space and c_t with t."""
    return WilsonClover(u, mass, 1, bc, (nu / xi0,) * 3 + (1,), (c_r / xi0,) * 3 + (c_t,) * 3)


def foreign(u, bc, clover, hop=(1,) * 4, kappa=0):
    """T - 1/2 hop with T as it is given: hermitian matrices [t,z,y,x,chirality,6,6]."""
    op = WilsonClover(u, -sum(hop), 0, bc, hop)
    op.clover, op.number = clover, np.zeros_like(op.number)
    return op


class Doublet:
    """M = D + i mu gamma_5 tau_3 - epsilon tau_1 of two flavours (Frezzotti, Rossi, hep-lat/0311008): fields [2] + those of D."""

    def __init__(self, u, bc, mass, mu, epsilon, csw=0.0, **more):
        self.flavour = [WilsonClover(u, mass, csw, bc, twist=t, **more) for t in (mu, -mu)]
        self.epsilon = epsilon
        self.shape = (2,) + self.flavour[0].shape
        self.n = int(np.prod(self.shape))

    def apply(self, psi):
        psi = psi.reshape(self.shape)
        return np.stack([op.apply(v) for op, v in zip(self.flavour, psi)]) - self.epsilon * psi[::-1]

    def matvec(self, v):
        return self.apply(v).ravel()

    def apply_dagger(self, psi):
        """M^+ = tau_1 g5 M g5 tau_1"""
        g5 = np.diag(GAMMA5).real[:, None]
        return (g5 * self.apply(g5 * psi.reshape(self.shape)[::-1]))[::-1]


def in_slices(b, ls):
    """A number for all slices, or one for each, with an imaginary part or not."""
    return np.broadcast_to(np.asarray(b, complex), (ls,))


class DomainWall:
    """(M psi)_s = (b_s D + 1) psi_s + (c_s D - 1) (Delta psi)_s, D = D_W(-M5) (Brower, Neff, Orginos, arXiv:1206.5214): fields [Ls] + those of D.
    Written as it stands, without the forms that the engine uses. solve: the four-dimensional quark of a source."""

    def __init__(self, u, bc, mass, M5, Ls, b=1.0, c=0.0, b_im=0.0, c_im=0.0, xi0=1.0, nu=1.0):
        w = nu / xi0
        self.wilson = WilsonClover(u, -M5, 0, bc, hop=(w, w, w, 1))
        self.wilson.number = np.full_like(self.wilson.number, 1 + 3 * w - M5)
        self.mass, self.ls, self.shape = mass, Ls, self.wilson.shape
        self.b, self.c = (in_slices(np.asarray(x) + 1j * np.asarray(y), Ls) for x, y in ((b, b_im), (c, c_im)))
        self.plus = ((1 + np.diag(GAMMA5).real) / 2)[:, None]

    def delta(self, psi, dagger=False):
        """P+ psi_{s-1} + P- psi_{s+1}, times -m where s wraps around; or its adjoint."""
        behind, ahead = np.roll(psi, 1, 0), np.roll(psi, -1, 0)
        behind[0] *= -self.mass
        ahead[-1] *= -self.mass
        plus, minus = (ahead, behind) if dagger else (behind, ahead)
        return self.plus * plus + (1 - self.plus) * minus

    def d(self, psi, dagger=False):
        return np.stack([self.wilson.apply_dagger(v) if dagger else self.wilson.apply(v) for v in psi])

    def apply5(self, psi, dagger=False):
        each = (slice(None),) + (None,) * 6
        if not dagger:
            hop = self.delta(psi)
            return self.d(self.b[each] * psi + self.c[each] * hop) + psi - hop
        down = self.d(psi, True)
        return self.b[each].conj() * down + psi + self.delta(self.c[each].conj() * down - psi, True)

    def enter(self, eta):
        """D_- P+ eta on slice 0, D_- P- eta on slice Ls-1; D_- = 1 - c_s D."""
        b = np.zeros((self.ls,) + self.shape, complex)
        for s, projector in ((0, self.plus), (-1, 1 - self.plus)):
            p = projector * eta
            b[s] += p - self.c[s] * self.wilson.apply(p)
        return b

    def leave(self, psi):
        return (1 - self.plus) * psi[0] + self.plus * psi[-1]

    def midpoint(self, psi):
        return self.plus * psi[self.ls // 2 - 1] + (1 - self.plus) * psi[self.ls // 2]

    def solve5(self, b, tol=1e-12, most=5000):
        """By CG on the normal equations."""
        x, r = np.zeros_like(b), b.copy()
        p = g = self.apply5(r, True)
        gamma, size = np.vdot(g, g).real, np.linalg.norm(b)
        for _ in range(most):
            q = self.apply5(p)
            alpha = gamma / np.vdot(q, q).real
            x, r = x + alpha * p, r - alpha * q
            if np.linalg.norm(r) < tol * size:
                return x
            g = self.apply5(r, True)
            gamma, before = np.vdot(g, g).real, gamma
            p = g + gamma / before * p
        raise ArithmeticError('no convergence')

    def solve(self, eta, tol=1e-12):
        return self.leave(self.solve5(self.enter(eta.reshape(self.shape)), tol))


class Staggered:
    """m + D/2 on colour vectors [t, z, y, x, colour], (D chi)(n) = sum_mu eta_mu(n) [F_mu(n) chi(n+mu) - F_mu(n-mu)^+ chi(n-mu) + the same with long
    links over three sites]; eta: 1, (-1)^x, (-1)^(x+y), (-1)^(x+y+z) for x, y, z, t. A hop over the edge takes the boundary factor once."""

    def __init__(self, fat, bc, mass, naik=None):
        self.mass, self.shape = mass, fat.shape[1:5] + (NC,)
        self.n = int(np.prod(self.shape))
        t, z, y, x = np.indices(self.shape[:4])
        eta = [1 + 0 * x, (-1) ** x, (-1) ** (x + y), (-1) ** (x + y + z)]
        self.hop = []  # (direction, reach, links with signs)
        for mu in range(ND):
            for reach, links in ((1, fat), (3, naik)):
                if links is None:
                    continue
                over = np.indices(self.shape[:4])[AXIS[mu]] >= self.shape[AXIS[mu]] - reach
                self.hop.append((mu, reach, links[mu] * (eta[mu] * np.where(over, bc[mu], 1))[..., None, None]))

    def d(self, psi):
        psi, out = psi.reshape(self.shape)[..., None], np.zeros(self.shape + (1,), complex)
        for mu, reach, w in self.hop:
            ahead = np.roll(psi, -reach, AXIS[mu])
            out += w @ ahead - np.roll(dag(w) @ psi, reach, AXIS[mu])
        return out[..., 0]

    def apply(self, psi):
        return self.mass * psi.reshape(self.shape) + 0.5 * self.d(psi)

    def matvec(self, v):
        return self.apply(v).ravel()

    def apply_dagger(self, psi):
        return self.mass * psi.reshape(self.shape) - 0.5 * self.d(psi)


def improved(u, bc, mass, recipe, number):
    """Staggered fermions over the fat and long links of a function of fat_ref.py."""
    import fat_ref  # which imports this file
    fat, naik = getattr(fat_ref, recipe)(u, number)
    return Staggered(fat, bc, mass, naik)


def overlap(u, bc, **parameters):
    import overlap_ref  # which imports this file
    return overlap_ref.Overlap(u, bc, **parameters)


# Operators by the names of proto/action/actions.c: function of links, boundary factors and the action's parameters, whose '-' are '_' here.
ACTIONS = {
    'wilson': lambda u, bc, mass, **more: WilsonClover(u, mass, 0, bc, **more),
    'wilson-clover': lambda u, bc, mass, csw, clover_plane=(1,) * 6, **more: WilsonClover(u, mass, csw, bc, planes=clover_plane, **more),
    'anisotropic-clover': anisotropic,
    'twisted-clover': lambda u, bc, mass, mu, csw=0.0, flavour=1, **more: WilsonClover(u, mass, csw, bc, twist=flavour * mu, **more),
    'exp-clover': lambda u, bc, mass, csw, **more: WilsonClover(u, mass, csw, bc, exponential=True, **more),
    'doublet': Doublet,
    'foreign-clover': foreign,
    'moebius': DomainWall,
    'staggered': Staggered,
    'asqtad': lambda u, bc, mass, u0: improved(u, bc, mass, 'asqtad', u0),
    'hisq': lambda u, bc, mass, epsilon=0.0: improved(u, bc, mass, 'hisq', epsilon),
    'overlap': overlap,
}


def apply_M(u, psi, m, csw=0.0, bc=ANTIPERIODIC):
    return WilsonClover(u, m, csw, bc).apply(psi)


# scipy 1.12 renamed the argument
TOL = 'rtol' if 'rtol' in inspect.signature(bicgstab).parameters else 'tol'


def solve(op, b, tol=1e-12, maxiter=20000, x0=None):
    """Solve M x = b by BiCGStab, restarted on the true residual; falls back on GMRES(60).
    Returns x, true relative residual, operator applications."""
    count = [0]

    def mv(v):
        count[0] += 1
        return op.matvec(v)
    lin = LinearOperator((op.n, op.n), matvec=mv, dtype=complex)
    b = b.ravel()
    x = np.zeros(op.n, complex) if x0 is None else x0.ravel().copy()
    r, nb = b - op.matvec(x), np.linalg.norm(b)
    for trial in range(12):
        res = np.linalg.norm(r) / nb
        if res <= tol:
            break
        want = min(0.3 * tol / res, 0.1)
        d, _ = (bicgstab(lin, r, maxiter=maxiter, **{TOL: want}) if trial < 6 else
                gmres(lin, r, restart=60, maxiter=400, **{TOL: want}))
        rn = r - op.matvec(d)
        if np.linalg.norm(rn) < np.linalg.norm(r):
            x, r = x + d, rn
    return x.reshape(op.shape), float(np.linalg.norm(b - op.matvec(x)) / nb), count[0]


def point_source(op, spin, colour, site=(0, 0, 0, 0)):
    """site = (t,z,y,x)."""
    b = np.zeros(op.shape, complex)
    b[site + (spin, colour)] = 1
    return b


def pion_correlator(op, tol=1e-12):
    """C(t) = sum over space, spins and colours of |S(t,x;0)|^2 from 12 point solves at the origin."""
    c, worst = np.zeros(op.shape[0]), 0.0
    for s in range(NS):
        for k in range(NC):
            x, res, _ = solve(op, point_source(op, s, k), tol)
            c += (np.abs(x)**2).sum(axis=(1, 2, 3, 4, 5))
            worst = max(worst, res)
    return c, worst
