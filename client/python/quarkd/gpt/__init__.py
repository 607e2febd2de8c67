"""An inverter for GPT (github.com/lehner/gpt) whose solves a quarkd daemon does.

    import gpt as g, quarkd.gpt
    w = g.qcd.fermion.wilson_clover(U, mass=0.1, csw_r=1.2, csw_t=1.2, xi_0=1, nu=1, isAnisotropic=False, boundary_phases=[1, 1, 1, -1])
    q = quarkd.gpt.connect(U[0].grid)
    propagator = g(w.propagator(quarkd.gpt.solver(q, tol=1e-10)) * source)

The daemon makes a setup of the links and parameters of the operator, private to this user, or `setup` names one, which must be of that operator.
Fields of GPT are the daemon's but for the order of their axes: lexicographic with x fastest, 4 spins in the basis of DeGrand and Rossi, 3 colours.
Ranks are those of GPT; each moves its own brick.
"""
from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from .. import gauge
from ..connection import Connection, connect as connect_to
from ..mpi import Bricks
from ..status import Report
from ..terms import Name

Link = Union[Connection, Bricks]
# Of an operator, and what they are where it is isotropic.
ANISOTROPIC = {'xi0': 1.0, 'nu': 1.0, 'c-r': 0.0, 'c-t': 0.0}
ALIKE = 1e-14  # of numbers of two operators


def connect(grid: Any, endpoint: Optional[str] = None, **options: Any) -> Link:
    """Connects the ranks of a GPT grid (MPI of mpi4py), each with the part of the lattice that it has there. options: of quarkd.connect."""
    link: Link
    if grid.Nprocessors == 1:
        link = connect_to(endpoint, **options)
        return link
    from mpi4py import MPI
    (gx, gy, gz, gt), (cx, cy, cz, ct) = _four('mpi', grid.mpi), _four('processor_coor', grid.processor_coor)
    # Grid numbers ranks with t fastest, quarkd with x.
    comm = MPI.COMM_WORLD.Split(0, ((ct * gz + cz) * gy + cy) * gx + cx)
    link = connect_to(endpoint, comm=comm, grid=(gx, gy, gz, gt), **options)
    return link


def _four(name: str, numbers: Sequence[Any]) -> Tuple[int, int, int, int]:
    if len(numbers) != 4:
        raise ValueError('a grid with %s %s: must have four dimensions' % (name, list(numbers)))
    x, y, z, t = (int(n) for n in numbers)
    return x, y, z, t


class Operator:
    """What an operator of g.qcd.fermion.wilson_clover is in quarkd's words. Errors: TypeError, ValueError, of what the daemon does not solve.

    mass, csw_r, csw_t, xi0, nu; boundary: factors of x, y, z, t
    """

    def __init__(self, mat: Any) -> None:
        if getattr(mat, 'name', None) != 'wilson_clover' or not hasattr(mat, 'params') or not hasattr(mat, 'U'):
            raise TypeError('%s %s: must be an operator of g.qcd.fermion.wilson_clover'
                            % (type(mat).__name__, getattr(mat, 'name', 'without a name')))
        p: Mapping[str, Any] = mat.params
        if p.get('multi_rhs') or p.get('Ls') is not None:
            raise ValueError('n_rhs %s: must be 1; lists of fields are solved together' % p.get('n_rhs'))
        phases = p.get('boundary_phases')
        if phases is None or len(phases) != 4:
            raise ValueError('boundary_phases %s: must be four numbers' % (phases,))
        if phases[3] == 0:
            raise ValueError('boundary_phases %s: an open boundary is not solved for GPT' % (list(phases),))
        self.boundary = [complex(phase) for phase in phases]
        gauge.boundary_text(self.boundary)
        self.mass, self.csw_r, self.csw_t = (self._number(p, name) for name in ('mass', 'csw_r', 'csw_t'))
        self.xi0 = self.nu = 1.0
        if p.get('isAnisotropic'):
            self.xi0, self.nu = self._number(p, 'xi_0'), self._number(p, 'nu')

    @staticmethod
    def _number(p: Mapping[str, Any], name: str) -> float:
        value = p.get(name)
        if value is None and name != 'mass':
            return 1.0 if name in ('xi_0', 'nu') else 0.0
        if not isinstance(value, (int, float, np.floating)) or not math.isfinite(value):
            raise ValueError('%s %r of the operator: must be a number' % (name, value))
        return float(value)

    def terms(self) -> Dict[str, Any]:
        """For a setup."""
        if self.xi0 == 1 and self.nu == 1 and self.csw_r == self.csw_t:
            return {'action': 'wilson-clover', 'parameters': {'mass': self.mass, 'csw': self.csw_r}}
        return {'action': 'anisotropic-clover',
                'parameters': {'mass': self.mass, 'xi0': self.xi0, 'nu': self.nu, 'c-r': self.csw_r, 'c-t': self.csw_t}}

    def check(self, report: Report, digest: int) -> None:
        """Errors: ValueError, where a setup is of another operator."""
        s = report.setup
        known = {name: float(s['parameters'].get(name, other)) for name, other in ANISOTROPIC.items()}
        if s['action'] in ('wilson', 'wilson-clover'):
            known['c-r'] = known['c-t'] = 0.0 if s['action'] == 'wilson' else float(s['csw'])
        elif s['action'] != 'anisotropic-clover':
            raise ValueError('setup %s: its action is %s, not one of wilson_clover' % (s['name'], s['action']))
        if s['parameters'].get('links', 'thin') != 'thin':
            raise ValueError('setup %s: its links are smeared (%s)' % (s['name'], s['parameters']['links']))
        pairs = [('mass', float(s['mass']), self.mass), ('csw_r', known['c-r'], self.csw_r), ('csw_t', known['c-t'], self.csw_t),
                 ('xi_0', known['xi0'], self.xi0), ('nu', known['nu'], self.nu)]
        for name, theirs, ours in pairs:
            if not abs(theirs - ours) <= ALIKE * max(1.0, abs(ours), 4 if name == 'mass' else 0):
                raise ValueError('setup %s has %s = %r, the operator %r' % (s['name'], name, theirs, ours))
        phases = [complex(*s['boundary'][2 * mu:2 * mu + 2]) for mu in range(4)]
        if not all(abs(a - b) <= gauge.NEAR for a, b in zip(phases, self.boundary)):
            raise ValueError('setup %s has the boundary phases %s, the operator %s' % (s['name'], phases, self.boundary))
        if s['digest'] != digest:
            raise ValueError('setup %s has links of digest %016x, the operator of %016x' % (s['name'], s['digest'], digest))


class Fields:
    """Lattices of one grid as arrays of this rank, in the order of the daemon."""

    def __init__(self, link: Link, grid: Any) -> None:
        if grid.cb.n != 1 or grid.nd != 4:
            raise ValueError('a grid %s of %d dimensions: must be of all sites, in four' % (grid.cb.__name__, grid.nd))
        mine = tuple(slice(c * n, (c + 1) * n) for c, n in zip(reversed(grid.processor_coor), reversed(grid.ldimensions)))
        if isinstance(link, Bricks):
            if tuple(grid.mpi) != link.grid or mine != link.slices:
                raise ValueError('GPT has the ranks %s, the connection %s: connect with quarkd.gpt.connect(grid)' % (list(grid.mpi), list(link.grid)))
        elif grid.Nprocessors != 1:
            raise ValueError('GPT has %d ranks: connect with quarkd.gpt.connect(grid)' % grid.Nprocessors)
        self.lattice, self.dtype = tuple(s.stop - s.start for s in mine), np.dtype(grid.precision.complex_dtype)

    def array(self, lattice: Any, *inner: int) -> NDArray[Any]:
        """[t, z, y, x, inner...]"""
        return np.asarray(lattice[:]).reshape(self.lattice + inner)

    def links(self, u: Sequence[Any]) -> NDArray[Any]:
        """[t, z, y, x, mu, 3, 3]"""
        if len(u) != 4:
            raise ValueError('links of %d directions: must be 4' % len(u))
        return np.stack([self.array(one, 3, 3) for one in u], axis=4)

    @staticmethod
    def store(lattice: Any, array: NDArray[Any]) -> None:
        lattice[:] = np.ascontiguousarray(array.reshape((-1, 4, 3)))


class Inverse:
    """The solves of one operator. It follows mat.update(U)."""

    def __init__(self, link: Link, mat: Any, setup: Name, terms: Dict[str, Any]) -> None:
        self.link, self.mat, self.given, self.terms = link, mat, setup, terms
        self._load()

    def _load(self) -> None:
        operator = Operator(self.mat)
        links = Fields(self.link, self.mat.U[0].grid).links(self.mat.U)
        self._seen = self.mat.params.get('U')  # another list after each update
        if self.given is not None:
            report = self.link._report(self.given) if isinstance(self.link, Bricks) else self.link.ready(self.given)
            operator.check(report, self.link.digest(links) if isinstance(self.link, Bricks) else gauge.digest(links))
            self.setup = self.given
        elif isinstance(self.link, Bricks):
            bricks = self.link.upload_gauge(links, operator.boundary)
            self.setup = self.link.setup(gauge=bricks, **operator.terms())
            bricks.release()
        else:
            field = self.link.upload_gauge(links, operator.boundary)
            self.setup = self.link.setup(gauge=field, **operator.terms())
            field.release()

    def solve(self, dst: List[Any], src: List[Any], dagger: bool) -> None:
        """dst: lattices of the same grid as src."""
        if self.mat.params.get('U') is not self._seen:
            self._load()
        fields = Fields(self.link, src[0].grid)
        b = self.link.empty((len(src),) + fields.lattice + (4, 3), fields.dtype)
        for to, lattice in zip(b, src):
            to[...] = fields.array(lattice, 4, 3)
        for lattice, x in zip(dst, self.link.solve(b, setup=self.setup, dagger=dagger, **self.terms)):
            fields.store(lattice, x)


class Solver:
    """What `solver` makes: called with an operator of GPT it gives that of its inverse."""

    def __init__(self, link: Link, setup: Name, terms: Dict[str, Any]) -> None:
        self.link, self.setup, self.terms = link, setup, terms

    def modified(self, **terms: Any) -> Solver:
        """The same with other terms."""
        return Solver(self.link, terms.pop('setup', self.setup), {**self.terms, **terms})

    def __call__(self, mat: Any) -> Any:
        """A g.matrix_operator; its adjoint and inverse are there. Lists of fields, and the twelve columns of a propagator, are solved together.
        The operator's links are sent to the daemon if it does not have them. Errors: TypeError, ValueError (an operator that the daemon does not
        solve, a setup of another one); those of Connection.setup."""
        import gpt
        there = Inverse(self.link, mat, self.setup, self.terms)
        daggered = bool(getattr(mat, 'daggered', False))
        return gpt.matrix_operator(
            mat=lambda dst, src: there.solve(dst, src, daggered), adj_mat=lambda dst, src: there.solve(dst, src, not daggered),
            inv_mat=mat.specialized_list_callable(), adj_inv_mat=mat.adj().specialized_list_callable(),
            vector_space=mat.vector_space, accept_guess=(False, False), accept_list=True)


def solver(q: Link, *, setup: Name = None, **terms: Any) -> Solver:
    """An inverter for GPT: w.propagator(quarkd.gpt.solver(q, tol=1e-10)).

    q      of quarkd.gpt.connect
    setup  None: one that the daemon makes of the operator; else one that is there, which must be of the same links, mass, csw and boundary
    terms  of Connection.submit: tol, max_iter, priority, ...
    A solve that does not converge raises ConvergenceError.
    """
    return Solver(q, setup, terms)
