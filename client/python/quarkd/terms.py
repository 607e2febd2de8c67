"""What a request asks for, in words and numbers, and the quark_params_t of it."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import DTypeLike

from . import arrays
from ._quark import ffi, lib
from .smearing import Gauss
from .status import Setup

BASES = {'degrand-rossi': lib.QUARK_DEGRAND_ROSSI, 'ukqcd': lib.QUARK_UKQCD, 'dirac-pauli': lib.QUARK_DIRAC_PAULI, 'openqcd': lib.QUARK_OPENQCD}
NORMALISATIONS = {'mass': lib.QUARK_MASS, 'kappa': lib.QUARK_KAPPA, 'twice': lib.QUARK_TWICE}
PARITIES = {None: lib.QUARK_PARITY_ALL, 'even': lib.QUARK_PARITY_EVEN, 'odd': lib.QUARK_PARITY_ODD}
SCHURS = {None: lib.QUARK_SCHUR_NONE, 'symmetric': lib.QUARK_SCHUR_SYMMETRIC, 'asymmetric': lib.QUARK_SCHUR_ASYMMETRIC}
WORKS = {'solve': lib.QUARK_WORK_SOLVE, 'M': lib.QUARK_WORK_M, 'hop': lib.QUARK_WORK_HOP, 'clover': lib.QUARK_WORK_DIAG,
         'clover_inverse': lib.QUARK_WORK_DIAG_INVERSE, 'clover_inverse_hop': lib.QUARK_WORK_DIAG_INVERSE_HOP, 'schur': lib.QUARK_WORK_SCHUR,
         'smear': lib.QUARK_WORK_SMEAR}
USUAL = 1e-10  # of tol, where no other residual is asked for
LONGEST = 1e9  # seconds
MOST_MASSES = 16
Name = Union[str, Setup, None]


def name_of(setup: Name) -> Optional[str]:
    return setup.name if isinstance(setup, Setup) else setup


def choose(what: str, value: Optional[str], table: Mapping[Any, int]) -> int:
    """
    >>> choose('parity', 'both', PARITIES)
    Traceback (most recent call last):
        ...
    ValueError: parity 'both': must be None, even or odd
    """
    if value not in table:
        words = [str(word) for word in table]
        raise ValueError('%s %r: must be %s or %s' % (what, value, ', '.join(words[:-1]), words[-1]))
    return table[value]


def tolerances(tol: Optional[float], tol_abs: float, tol_hq: float) -> Tuple[float, float, float]:
    """What is asked for: tol as it is given; None: 1e-10, or nothing beside another one.

    >>> tolerances(None, 0, 0), tolerances(None, 1e-8, 0), tolerances(1e-6, 0, 1e-5)
    ((1e-10, 0.0, 0.0), (0.0, 1e-08, 0.0), (1e-06, 0.0, 1e-05))
    """
    out = ((0.0 if tol_abs or tol_hq else USUAL) if tol is None else float(tol), float(tol_abs), float(tol_hq))
    if not all(0 <= x < np.inf for x in out) or not any(out):
        raise ValueError('tol %r, tol_abs %r, tol_hq %r: must be finite, 0 or more, and one of them more than 0' % out)
    return out


def mass_list(masses: Optional[Sequence[float]]) -> Tuple[float, ...]:
    """The masses of a request; none: that of the setup.

    >>> mass_list([0.1, 0.02]), mass_list(None)
    ((0.1, 0.02), ())
    """
    if masses is None:
        return ()
    out = tuple(float(m) for m in np.atleast_1d(np.asarray(masses, float)).ravel())
    if not 1 <= len(out) <= MOST_MASSES or len(set(out)) != len(out) or not np.isfinite(out).all():
        raise ValueError('masses %r: must be 1 to %d finite numbers, none twice' % (out, MOST_MASSES))
    return out


def milliseconds(what: str, seconds: float) -> int:
    if not 0 <= seconds < LONGEST:
        raise ValueError('%s %r s: must be 0 to 1e9' % (what, seconds))
    return int(seconds * 1000)


def params(*, dtype: DTypeLike, nrhs: int, tol: Optional[float] = None, tol_abs: float = 0.0, tol_hq: float = 0.0, max_iter: int = 10000,
           basis: str = 'degrand-rossi', normalisation: str = 'mass', flavour: int = 1, dagger: bool = False, parity: Optional[str] = None,
           schur: Optional[str] = None, work: str = 'solve', batch_only: bool = False, setup: Name = None, smearing: Optional[Gauss] = None,
           priority: int = 4, deadline: float = 0.0, detach: float = 0.0, five_d: bool = False, masses: Optional[Sequence[float]] = None,
           grid: Optional[Sequence[int]] = None, part: int = -1) -> Tuple[Any, List[Any]]:
    """A quark_params_t, and what must live as long. nrhs: sources, of which each has a solution for each mass. grid, part: fields go in parts (quark_join).
    Errors: ValueError."""
    if flavour not in (1, -1) or not 0 <= priority <= 9 or not 1 <= max_iter < 1 << 63:
        raise ValueError('flavour %r, priority %r, max_iter %r: must be 1 or -1, 0 to 9, and positive' % (flavour, priority, max_iter))
    p, keep = ffi.new('quark_params_t *'), []
    lib.quark_params_init(p)
    p.nrhs, p.dtype, p.max_iter = nrhs, arrays.DTYPES[np.dtype(dtype).newbyteorder('<')], max_iter
    p.tol, p.tol_abs, p.tol_hq = tolerances(tol, tol_abs, tol_hq)
    p.basis, p.normalisation = choose('basis', basis, BASES), choose('normalisation', normalisation, NORMALISATIONS)
    p.work, p.dagger = choose('part', work, WORKS), dagger
    p.parity, p.schur = choose('parity', parity, PARITIES), choose('schur', schur, SCHURS)
    if p.schur and not p.parity:
        raise ValueError('schur %r: needs a parity, even or odd' % schur)
    p.flavour, p.priority, p.batch_only, p.five_d = flavour, priority, batch_only, five_d
    p.deadline_ms, p.detach_ms = milliseconds('deadline', deadline), milliseconds('detach', detach)
    several = mass_list(masses)
    if several:
        keep.append(ffi.new('double[]', several))
        p.mass, p.nmass, p.nrhs = keep[-1], len(several), nrhs * len(several)
    if grid is not None:
        if several:
            raise ValueError('masses: not of fields in parts')
        p.grid, p.part = list(grid), part
    name = name_of(setup)
    if name is not None:
        keep.append(ffi.new('char[]', os.fsencode(name)))
        p.setup = keep[-1]
    if smearing:
        smearing.fill(p.smear)
    return p, keep


def halved(shape: Tuple[int, ...], parity: Optional[str]) -> Tuple[int, ...]:
    """The shape of a field of one parity: of x and x + 1 one site is there. Errors: ValueError.

    >>> halved((8, 4, 4, 4, 4, 3), 'odd')
    (8, 4, 4, 2, 4, 3)
    """
    choose('parity', parity, PARITIES)
    if parity is not None and len(shape) == 5:
        raise ValueError('parity %r: fields with colour alone have all sites' % parity)
    return shape if parity is None else shape[:-3] + (shape[-3] // 2,) + shape[-2:]


def known(terms: Dict[str, Any]) -> Dict[str, Any]:
    """The terms that files speak of, with their defaults."""
    tol, tol_abs, tol_hq = tolerances(terms.get('tol'), terms.get('tol_abs', 0.0), terms.get('tol_hq', 0.0))
    return {'tol': tol, 'tol_abs': tol_abs, 'tol_hq': tol_hq, 'flavour': terms.get('flavour', 1), 'setup': terms.get('setup'),
            'normalisation': terms.get('normalisation', 'mass'), 'basis': 'degrand-rossi'}
