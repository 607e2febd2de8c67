#!/usr/bin/env python3
"""Links from memory in the real engine, judged by the numpy oracle: test_fields.py QUARKD QUARK_ENGINE QUARK_GAUGE [RANKS]"""
import os
import sys

import tap

try:
    import numpy as np
    import ref_dirac as ref
    from daemon_case import CSW, DIMS, MASS, DaemonCase
    from field_links import digest, noisy, open_field, send, widened
    from front_case import State, kill
    from front_driver import STATUS, Client, qk
    from setups_case import drop, load, setups, wait_for
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


class Fields(DaemonCase):
    def __init__(self, *programs):
        super().__init__(*programs)
        self.wire = np.ascontiguousarray(np.moveaxis(self.links, 0, 4))  # of the gauge file
        self.other = noisy(DIMS, 11)

    def lasting_engine(self, _):
        return self.engine

    def check(self, client, setup, links, csw=CSW, mass=MASS, boundary=(1, 1, 1, -1)):
        """A right-hand side for the setup is solved with these links."""
        op = ref.WilsonClover(np.moveaxis(links, 4, 0), mass, csw, boundary)
        b = self.noise(3)
        (r, x), = client.solve([b], setup=setup, tol=1e-10)
        assert r.status == 0, r
        x, b = x.reshape(self.shape), b.reshape(self.shape)
        off = np.linalg.norm(b - op.apply(x)) / np.linalg.norm(b)
        assert off < 1.01e-10, off


@tap.test
def links_of_the_file_are_known_and_others_make_a_setup(case):
    with case.daemon() as d, Client(d) as c:
        assert digest(case.wire) == d.status().setup.digest  # by another implementation
        assert open_field(c, case.wire, digest=digest(case.wire)).upload_until == 0
        assert c.expect('result').status == 0
        load(c, 'heavy', gauge='field:%d' % c.request, mass=0.3, csw=CSW)
        for single, reals in ((False, 18), (True, 12), (False, 12)):
            seen = widened(case.other, single, reals)
            r = send(c, case.other, single, reals, plaquette=ref.plaquette(np.moveaxis(seen, 4, 0)))
            name = 'mine-%d-%d' % (single, reals)
            load(c, name, gauge='field:%d' % r.request, mass=MASS, csw=CSW)
            s = wait_for(d, name, qk.STATE_READY)
            assert s.digest == r.digest == digest(seen), s
            case.check(c, name, seen)
            drop(c, name)
            wait_for(d, name, None)
        wait_for(d, 'heavy', qk.STATE_READY)
        case.check(c, 'heavy', case.wire, mass=0.3)
        case.check(c, 'main', case.wire)
        assert d.terminate() == 0


@tap.test
def another_plaquette_than_was_said_is_found_at_load(case):
    with case.daemon() as d, Client(d) as c:
        r = send(c, case.other, plaquette=0.5)
        load(c, 'mine', gauge='field:%d' % r.request, mass=MASS, csw=CSW)
        s = wait_for(d, 'mine', qk.STATE_FAILED)
        assert s.status == STATUS['BAD_PLAQUETTE'] and 'states 0.5' in s.text, s
        case.check(c, 'main', case.wire)


@tap.test
def an_engine_or_a_front_that_dies_finds_the_links_again(case):
    with State(case) as state:
        with state.daemon() as d, Client(d) as c:
            r = send(c, case.other)
            c.ack(r.request)
            load(c, 'mine', gauge='field:%d' % r.request, mass=MASS, csw=CSW)
            wait_for(d, 'mine', qk.STATE_READY)
            os.kill(d.status(setup='mine').engine.pid, 9)
            d.log('mine ready', 2)
            case.check(c, 'mine', case.other)
            d.log('is on the disk')
            kill(d)
        state.end_the_machine()
        with state.daemon() as d, Client(d, c.client_id) as c:
            wait_for(d, 'mine', qk.STATE_READY)
            c.request = 1000
            case.check(c, 'mine', case.other)
            assert setups(d)['mine'].digest == r.digest
            assert d.terminate() == 0


if __name__ == '__main__':
    tap.run(Fields(*sys.argv[1:]))
