"""What the tests of setups share: loads, drops, reports."""
import os
import subprocess

import numpy as np
from front_case import Case, field
from front_driver import qk

FAKE = 'builtin:fake'


class Setups(Case):
    def __init__(self, binary, quarkctl):
        super().__init__(binary)
        self.quarkctl = quarkctl

    def ctl(self, daemon, *args):
        return subprocess.run([self.quarkctl, *map(str, args)], env=dict(os.environ, QUARKD_ENDPOINT=daemon.endpoint),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def load(client, name, gauge=FAKE, **more):
    more = {'csw': 1.0, **more}
    client.send(load=qk.Load(name=name, gauge=gauge, **more))
    return client.expect('setup').setup


def setups(daemon):
    return {s.name: s for s in daemon.status().setups}


def wait_for(daemon, name, state):
    """The report of the setup once it is in that state; None: once it is gone."""
    def there(report):
        found = [s for s in report.setups if s.name == name]
        return found[0] if found else None
    if state is None:
        daemon.status_when(lambda s: there(s) is None)
        return None
    return there(daemon.status_when(lambda s: there(s) and there(s).state == state))


def load_and_wait(daemon, client, name, **more):
    load(client, name, **more)
    return wait_for(daemon, name, qk.STATE_READY)


def drop(client, name, now=False):
    client.send(drop=qk.Drop(name=name, now=now))
    return client.expect('setup', skip=('progress', 'credit', 'result')).setup


def check(client, factor, **more):
    b = field()
    (result, x), = client.solve([b], **more)
    assert result.status == 0 and np.array_equal(x, factor * b), (result, factor)


def refused(client, how, **body):
    client.send(**body)
    return client.error(how, fatal=False).text


def results_of(client, request, count):
    """Of this request, whatever else is told."""
    found = {}
    while len(found) < count:
        name, body = client.receive()
        if name == 'result' and body.request == request:
            found[body.rhs] = body
    return [found[i] for i in sorted(found)]
