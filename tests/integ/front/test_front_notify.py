#!/usr/bin/env python3
"""What quarkd tells systemd, with the engine that only pretends: test_front_notify.py QUARKD"""
import contextlib
import os
import shutil
import socket
import sys
import tempfile

import tap

try:
    from front_case import Case, fake
    from front_driver import Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))


class Systemd:
    """Its end of the notification socket."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix='qk-notify-')
        self.path = os.path.join(self.dir, 'socket')
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(60)
        self.heard = []

    def environment(self, watchdog=None):
        return {'NOTIFY_SOCKET': self.path, **({'WATCHDOG_USEC': str(watchdog)} if watchdog else {})}

    def until(self, word):
        """Hears messages up to the one that begins so; returns it."""
        while True:
            self.heard.append(self.socket.recv(4096).decode())
            if self.heard[-1].startswith(word):
                return self.heard[-1]

    def close(self):
        self.socket.close()
        shutil.rmtree(self.dir)


@tap.test
def ready_and_stopping_are_told_once(case):
    with contextlib.closing(Systemd()) as s, case.daemon(env=s.environment()) as d, Client(d) as c:
        s.until('READY=1')
        assert any(h.startswith('EXTEND_TIMEOUT_USEC=') for h in s.heard), s.heard
        assert s.heard.index('STATUS=serving 4x4x4x4 with bicgstab, 16 slots') < len(s.heard) - 1, s.heard
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        d.status_when(lambda report: report.counters.running == 1)
        d.process.terminate()
        s.until('STOPPING=1')
        s.until('EXTEND_TIMEOUT_USEC=')
        assert s.heard.count('READY=1') == 1 and 'STATUS=draining' in s.heard and 'WATCHDOG=1' not in s.heard, s.heard
        c.send(cancel=qk.Cancel(request=1))
        c.results(1)
        c.ack(1)
        assert d.wait() == 0


@tap.test
def signs_of_life_come_in_time_also_while_the_engine_is_not_there(case):
    with contextlib.closing(Systemd()) as s, case.daemon(env={**s.environment(watchdog=800000), 'FAKE_LOAD': 'mute'}, wait=None) as d:
        for _ in range(3):
            s.until('WATCHDOG=1')
        assert 'READY=1' not in s.heard and any(h.startswith('EXTEND_TIMEOUT_USEC=') for h in s.heard), s.heard
        assert d.process.poll() is None


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
