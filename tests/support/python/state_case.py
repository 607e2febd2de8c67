"""What the tests of the state folder share."""
import numpy as np
from front_case import once_more
from front_driver import Client


def spooled(daemon, count):
    daemon.log('is on the disk', count)


def again(daemon, client, nrhs, **more):
    """A new connection of that client that submits its latest request once more."""
    c = Client(daemon, client.client_id)
    assert c.welcome.resumed
    return c, once_more(c, nrhs, client.request, **more)


def results_of(client, request, count):
    """Of this request only."""
    found = {}
    while len(found) < count:
        r = client.expect('result')
        if r.request == request:
            found[r.rhs] = r
    return [found[i] for i in sorted(found)]


def check(client, results, fields):
    for r, b in zip(results, fields):
        assert r.status == 0 and np.array_equal(client.fetch(r), 2 * b), r
