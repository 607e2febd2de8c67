"""Setups of the daemon, as calls of a connection."""
from __future__ import annotations

import hashlib
import os
import time
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import errors
from ._quark import ffi, lib
from .gauge import Boundary, Gauge, boundary_text, upload
from .handle import Handle
from .smearing import real
from .status import Report, Setup
from .terms import Name, milliseconds, name_of

LOOK = 0.01, 0.1  # seconds between the first two looks at a setup that is not ready, and at most


def pauses() -> Iterator[None]:
    """Sleeps before all but the first, longer each time."""
    pause, most = LOOK
    while True:
        yield
        time.sleep(pause)
        pause = min(most, 1.5 * pause)


class Setups:
    """The part of Connection about configurations and setups. Loads from one's own links need the role submit; other changes, operate."""

    _handle: Handle
    _reports: Dict[str, Report]
    patience: float

    def setups(self) -> List[Setup]:
        """The setups of the daemon."""
        room, count, err = lib.QUARK_SETUPS, ffi.new('uint32_t *'), ffi.new('quark_error_t *')
        while True:
            found = ffi.new('quark_setup_t[]', room)
            with self._handle as conn:
                errors.check(lib.quark_setup_list(conn, found, room, count, err), err)
            if count[0] <= room:
                return [Setup.of(found[i]) for i in range(count[0])]
            room = count[0]

    def _wait_for(self, name: str, patience: float) -> Setup:
        give_up = time.monotonic() + patience
        for _ in pauses():
            found = [s for s in self.setups() if s.name == name]
            if not found:
                raise errors.make(lib.QUARK_NOT_FOUND, 'setup "%s": the daemon has none of this name' % name)
            found[0].check()
            if found[0].state == 'ready':
                return found[0]
            if time.monotonic() >= give_up:
                raise errors.make(lib.QUARK_TIMEOUT, 'setup "%s" is not ready in %g s: %s' % (name, patience, found[0].state))
        raise AssertionError('pauses ends')

    def upload_gauge(self, links: Any, boundary: Boundary = None, *, plaquette: Optional[float] = None, keep: float = 0.0,
                     patience: Optional[float] = None) -> Gauge:
        """Gives a configuration to the daemon, which checks each link. Nothing is sent if the daemon has it.

        links      [t, z, y, x, mu, 3, 3] with mu = x, y, z, t: SU(3), without boundary factors; complex64 travels as 32 bit
        boundary   of setups made of them: four factors such as (1, 1, 1, -1), or quarkd's text of them; None: as quarkd was started with
        plaquette  that a setup made of them must find; without effect where the daemon has them already
        keep       seconds that they stay after their last use, at most the daemon's limit; 0: that limit
        Errors: TypeError, ValueError; RequestError: NOT_UNITARY names the worst link.
        """
        return upload(self._handle, links, boundary, plaquette, milliseconds('keep', keep), self.patience if patience is None else patience)

    def setup(self, name: Optional[str] = None, *, gauge: Union[Gauge, str], **terms: Any) -> Setup:
        """A setup of one's own links, which only this user sees, and waits until it is ready: q.setup(gauge=u, kappa=0.1345, csw=1.77).

        name   None: one that follows from the links and terms, so that the same call again finds the same setup
        gauge  of upload_gauge, or "digest:" and 16 hexadecimal digits
        The other terms are those of `load`. A setup of that name with other terms is replaced. Errors: as `load`.
        """
        if not isinstance(gauge, (Gauge, str)):
            raise TypeError('gauge of type %s: must be what upload_gauge has returned, or "digest:" and 16 hexadecimal digits' % type(gauge).__name__)
        if isinstance(gauge, str) and not gauge.startswith('digest:'):
            raise ValueError('gauge "%s": must be what upload_gauge has returned, or "digest:" and 16 hexadecimal digits; files are for `load`' % gauge)
        if name is None:
            text = gauge.text if isinstance(gauge, Gauge) else gauge
            told = sorted((k, v) for k, v in terms.items() if k not in ('wait', 'patience'))
            name = 'python-' + hashlib.sha256(repr((text, gauge.boundary if isinstance(gauge, Gauge) else None, told)).encode()).hexdigest()[:16]
        return self.load(name, gauge=gauge, **terms)

    def load(self, name: str, *, gauge: Union[Gauge, str, None] = None, kappa: Optional[float] = None, mass: Optional[float] = None,
             csw: Optional[float] = None, action: Optional[str] = None, parameters: Optional[Mapping[str, Any]] = None,
             boundary: Boundary = None, solver: Optional[str] = None, precision: Optional[str] = None, slots: int = -1,
             dims: Optional[Tuple[int, int, int, int]] = None, make_default: bool = False, ignore_checksum: bool = False,
             evolve_from: Optional[str] = None, deflate: Union[int, str, None] = None, replicas: Optional[int] = None,
             devices: Optional[Sequence[int]] = None, fix_gauge: Optional[str] = None, wait: bool = True, patience: Optional[float] = None) -> Setup:
        """Loads a setup beside those that are there, and waits until it is ready unless told otherwise.

        What is None is as quarkd was started with. gauge: a path below one of the daemon's roots, or of upload_gauge. parameters: of the
        action. boundary: as in upload_gauge. deflate: how many lowest eigenvectors are made, which solves of cg,
        bicgstab and gcr begin with, or the name of those that a setup of these links and this operator keeps; of overlap fermions of those
        that its sign function projects, kind gamma5 of wilson with the mass -M. replicas: engines that serve the setup, on the GPUs of the numbers `devices`. fix_gauge: the gauge that the links are brought to, "landau" or "coulomb",
        with ":THETA" for another tolerance than 1e-12. Errors: RequestError; why the setup failed; Timeout.
        """
        load, keep = ffi.new('quark_load_t *'), []
        lib.quark_load_init(load)
        if isinstance(gauge, Gauge):
            boundary = gauge.boundary if boundary is None else boundary
            gauge = gauge.text
        for member, text in (('name', name), ('gauge', gauge), ('boundary', boundary_text(boundary)), ('solver', solver), ('precision', precision),
                             ('action', action), ('evolve_from', evolve_from), ('fix_gauge', fix_gauge)):
            if text is not None:
                keep.append(ffi.new('char[]', os.fsencode(text)))
                setattr(load, member, keep[-1])
        for member, number in (('kappa', kappa), ('mass', mass), ('csw', csw)):
            if number is not None:
                try:
                    setattr(load, member, number)
                except TypeError:
                    raise TypeError('%s %r: must be a number' % (member, number)) from None
        if isinstance(deflate, str):
            keep.append(ffi.new('char[]', os.fsencode(deflate)))
            load.deflate_from = keep[-1]
        elif deflate is not None:
            if not 0 <= deflate <= 4096:
                raise ValueError('deflate %d: must be 0 to 4096' % deflate)
            load.deflate = deflate
        if replicas is not None:
            if not 1 <= replicas <= 16:
                raise ValueError('replicas %d: must be 1 to 16' % replicas)
            load.replicas = replicas
        if devices is not None:
            keep.append(ffi.new('char[]', ','.join('%d' % d for d in devices).encode()))
            load.devices = keep[-1]
        pairs = []
        for k, v in (parameters or {}).items():
            keep += [ffi.new('char[]', k.encode()), ffi.new('char[]', (real(v) if isinstance(v, float) else str(v)).encode())]
            pairs.append(keep[-2:])
        array = ffi.new('quark_parameter_t[]', pairs) if pairs else ffi.NULL
        load.parameter, load.nparameter, load.slots = array, len(pairs), slots
        load.make_default, load.ignore_checksum = make_default, ignore_checksum
        if dims:
            load.dims = list(dims)
        err = ffi.new('quark_error_t *')
        self._reports.pop(name, None)
        with self._handle as conn:
            errors.check(lib.quark_load(conn, load, err), err)
        del keep
        if wait:
            return self._wait_for(name, self.patience if patience is None else patience)
        return next(s for s in self.setups() if s.name == name)

    def drop(self, setup: Name, now: bool = False) -> None:
        """Drops a setup when its open requests have ended; now: they are cancelled."""
        name, err = name_of(setup) or '', ffi.new('quark_error_t *')
        self._reports.pop(name, None)
        with self._handle as conn:
            errors.check(lib.quark_drop(conn, os.fsencode(name), now, err), err)

    def make_default(self, setup: Name) -> None:
        """Makes a setup that is ready the one of requests that name none."""
        err = ffi.new('quark_error_t *')
        with self._handle as conn:
            errors.check(lib.quark_make_default(conn, os.fsencode(name_of(setup) or ''), err), err)
