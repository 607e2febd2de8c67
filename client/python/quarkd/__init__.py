"""Client of quarkd, the lattice QCD solver daemon.

    import quarkd
    with quarkd.connect() as q:                      # QUARKD_ENDPOINT
        prop = q.propagator(quarkd.point(0, 0, 0, 0))   # stays with the daemon
        c = prop.correlator(['pion', 'nucleon'])
        print(c['pion'].meff()[0])

Fields are arrays [t, z, y, x, spin, colour], complex64 or complex128, DeGrand-Rossi unless said. quark.h, docs/physics.md.
"""
from . import contract, gamma
from ._quark import ffi as _ffi
from ._quark import lib as _lib
from .aio import AsyncConnection, aconnect
from .analysis import Ensemble
from .arrays import half, whole
from .connection import Connection, connect
from .correlator import Correlator, Correlators, WallSums
from .eigen import EigenProgress, EigenReport, Eigenvectors
from .errors import Cancelled, ConvergenceError, EngineError, Error, ForkError, ProcessError, RequestError, SolveError, Timeout
from .future import Future, as_completed
from .gauge import Gauge
from .propagator import Column, Propagator
from .request import Progress, Result
from .smearing import Gauss, Links, ape, gauss, hyp, stout
from .source import Source, point, sequential, vector, wall, z2, z4
from .status import Report, Setup
from .ticket import attach, ticket

__version__: str = _ffi.string(_lib.quark_version()).decode()
from . import io  # noqa: E402  which needs the version
__all__ = ['AsyncConnection', 'Cancelled', 'Column', 'Connection', 'ConvergenceError', 'Correlator', 'Correlators', 'EigenProgress', 'EigenReport', 'Eigenvectors', 'EngineError', 'Ensemble', 'Error', 'ForkError',
           'Future', 'Gauge', 'Gauss', 'Links', 'ProcessError', 'Progress', 'Propagator', 'Report', 'RequestError', 'Result', 'Setup', 'SolveError', 'Source',
           'Timeout', 'WallSums', 'aconnect', 'ape', 'as_completed', 'attach', 'connect', 'contract', 'gamma', 'gauss', 'half', 'hyp', 'io', 'point', 'sequential', 'stout', 'ticket', 'vector', 'wall',
           'whole', 'z2', 'z4']
