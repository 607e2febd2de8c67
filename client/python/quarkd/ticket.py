"""Requests that outlive their connection: tickets of them, and what takes them over."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import arrays, errors
from . import terms as term
from ._quark import ffi, lib
from .connection import Connection
from .future import Future
from .request import Request

MOST_BYTES, MOST_PARTS, CLIENT = 1 << 20, 256, 16
DTYPES: Dict[int, np.dtype[Any]] = {lib.QUARK_F32: np.dtype('<c8'), lib.QUARK_F64: np.dtype('<c16')}
PARITIES = {number: word for word, number in term.PARITIES.items()}


def ticket(futures: Sequence[Future]) -> str:
    """A text by which `attach` finds the requests of futures that were submitted with `detach`, in another process or later.

    Who has it can fetch and cancel them. Errors: ValueError: they are not detached, or of several connections.
    """
    requests = list({f._request.number: f._request for f in futures}.values())
    handles = {id(r.handle): r.handle for r in requests}
    if len(handles) != 1 or not all(r.detached for r in requests):
        raise ValueError('ticket: futures must be of one connection, and submitted with detach')
    handle = next(iter(handles.values()))
    parts = [{'request': r.number, 'nrhs': r.nrhs} for r in requests]
    return json.dumps({'format': 'quarkd ticket', 'endpoint': handle.endpoint, 'server_key': handle.server_key, 'client': handle.client_id().hex(),
                       'requests': parts})


def _read(given: str) -> Tuple[str, Optional[str], bytes, List[Tuple[int, int]]]:
    if given.lstrip().startswith('{'):
        where, text = 'ticket', given
    else:
        where = given
        with open(given, encoding='utf-8') as f:
            text = f.read(MOST_BYTES)
    try:
        t: Dict[str, Any] = json.loads(text)
        client, parts = bytes.fromhex(t['client']), [(int(p['request']), int(p['nrhs'])) for p in t['requests']]
        endpoint, key = str(t['endpoint']), t.get('server_key')
    except (ValueError, TypeError, KeyError) as e:
        raise ValueError('%s: is not a ticket, or is damaged: %r' % (where, e)) from None
    if len(client) != CLIENT or not 1 <= len(parts) <= MOST_PARTS or any(r < 1 or n < 1 for r, n in parts) or not isinstance(key, (str, type(None))):
        raise ValueError('%s: is not a ticket, or is damaged' % where)
    return endpoint, key, client, parts


def attach(given: str, **options: Any) -> List[Future]:
    """Takes over detached requests: a future for each right-hand side. What was fetched is forgotten by the daemon when all of its request is.

    given    the text of `ticket`, or the path of a file of it, or of one that quarkctl --detach wrote
    options  of `connect`: key for daemons that ask for one
    Errors: ValueError; RequestError: NOT_FOUND: fetched, expired or never accepted; those of `connect`.
    """
    endpoint, server_key, client, parts = _read(given)
    q = Connection(endpoint, server_key=server_key, client_id=client, **options)
    futures: List[Future] = []
    for number, nrhs in parts:
        futures += _take_over(q, number, nrhs)
    return futures


def _take_over(q: Connection, number: int, nrhs: int) -> List[Future]:
    attached, err = ffi.new('quark_attached_t *'), ffi.new('quark_error_t *')
    with q._handle as conn:
        errors.check(lib.quark_attach(conn, number, attached, err), err)
    p = attached.params
    if attached.contraction or attached.field or p.nrhs != nrhs:
        raise ValueError('request %d: is not of %d right-hand sides' % (number, nrhs))
    setup = ffi.string(p.setup).decode() if p.setup else None
    request = Request.of(q._handle, number, nrhs, attached.bytes)
    shape, dtype = term.halved(q.ready(setup).shape, PARITIES[p.parity]), DTYPES[p.dtype]
    if int(np.prod(shape)) * dtype.itemsize != attached.bytes:
        raise errors.make(lib.QUARK_BAD_GEOMETRY, 'request %d has fields of %d bytes, the setup has others now' % (number, attached.bytes))
    return [Future(request, i, dtype, shape, arrays.as_it_is) for i in range(nrhs)]
