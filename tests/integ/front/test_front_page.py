#!/usr/bin/env python3
"""The page of quarkd --http in a browser, with the engine that only pretends: test_front_page.py QUARKD

Chromium without a screen, by the WebDriver protocol (www.w3.org/TR/webdriver2) of chromedriver on the loopback interface.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import tap

try:
    from front_case import Case, check_solves, fake
    from front_driver import Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))
if not (shutil.which('chromium') and shutil.which('chromedriver')):
    tap.skip_all('chromium and chromedriver are needed: deploy/packages.sh web')

HOSTILE = '<script>caught=1</script><img src=x onerror=caught=1>'
LIMIT = 30  # seconds
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Browser:
    """One browser with one window."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='qk-browser-')
        # chromium leaves sockets and locks where these point
        environment = dict(os.environ, HOME=self.folder, XDG_RUNTIME_DIR=self.folder, TMPDIR=self.folder)
        self.driver = subprocess.Popen(['chromedriver', '--port=0'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True, env=environment)
        for line in self.driver.stdout:
            if m := re.search(r'started successfully on port (\d+)', line):
                self.base = 'http://127.0.0.1:%s/session' % m[1]
                break
        options = ['--headless=new', '--disable-gpu', '--disable-dev-shm-usage', '--window-size=1280,1200',
                   '--user-data-dir=' + os.path.join(self.folder, 'profile')]
        if os.geteuid() == 0:
            options.append('--no-sandbox')  # chromium's own does not run as root
        wanted = {'goog:chromeOptions': {'args': options}, 'goog:loggingPrefs': {'browser': 'ALL'},
                  'timeouts': {'script': 1000 * LIMIT, 'pageLoad': 1000 * LIMIT}}
        self.base += '/' + self.call('', capabilities={'alwaysMatch': wanted})['sessionId']

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            OPENER.open(urllib.request.Request(self.base, method='DELETE'), timeout=LIMIT).read()
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, path, **body):
        request = urllib.request.Request(self.base + path, json.dumps(body).encode(), {'Content-Type': 'application/json'})
        with OPENER.open(request, timeout=2 * LIMIT) as answer:
            return json.load(answer)['value']

    def open(self, d):
        self.call('/url', url='http://127.0.0.1:%s/' % d.log(r'over HTTP on 127\.0\.0\.1:(\d+)')[1])

    def ask(self, expression):
        return self.call('/execute/sync', script='return ' + expression, args=[])

    def wait_for(self, condition):
        """Until the page fulfils it."""
        script = 'const done = arguments[0]; (function look() { if (%s) done(true); else setTimeout(look, 20); })()' % condition
        try:
            assert self.call('/execute/async', script=script, args=[])
        except OSError as e:
            raise AssertionError('never: %s\n%s' % (condition, self.ask('document.body.innerText'))) from e

    def rows(self, table):
        return self.ask('[...document.querySelectorAll("#%s tbody tr")].map(r => [...r.cells].map(c => c.textContent))' % table)

    def log(self):
        return self.call('/se/log', type='browser')


@tap.test
def shows_what_goes_on_and_follows_it(browser, case):
    with case.daemon('--http', '127.0.0.1:0', '--slots', '4') as d, Client(d, user='ann') as a, Client(d, user=HOSTILE) as b:
        check_solves(a, 3)
        b.submit(3, source=qk.SOURCE_POINT, max_iter=fake.PROGRESS, tol=1e-4)
        a.submit(5, source=qk.SOURCE_POINT, max_iter=fake.PROGRESS, tol=1e-6)
        d.status_when(lambda s: sum(x.iterations == 49 for x in s.activity.slot) == 4, activity=True)
        browser.open(d)
        browser.wait_for('document.querySelectorAll("#slots tbody tr").length === 4')
        assert browser.ask('document.getElementById("state").textContent') == 'ready'
        slots = {r[0]: r for r in browser.rows('slots')}
        assert set(slots) == {'0', '1', '2', '3'} and {r[1] for r in slots.values()} == {'ann', HOSTILE}, slots
        first = next(r for r in slots.values() if r[1] == HOSTILE)
        assert first[4:7] == ['49', '2.00e-2', '1.00e-4'] and first[2].endswith('/1'), first
        users = {r[0]: r for r in browser.rows('users')}
        assert users['ann'][1:3] != ['0', '0'] and sum(int(r[1]) for r in users.values()) == 4, users
        tiles = browser.ask('document.getElementById("tiles").innerText')
        assert '4 of 4' in tiles and re.search(r'Queued\s+4\b', tiles) and '3 so far' in tiles, tiles
        curves = browser.ask('[...document.querySelectorAll("#convergence polyline")].map(p => p.getAttribute("points"))')
        assert len(curves) == 4, curves
        for curve in curves:  # from left to right, and down
            points = [tuple(map(float, p.split(','))) for p in curve.split()]
            assert len(points) > 40 and points == sorted(points, key=lambda p: (p[0], p[1])) and points[-1][1] > points[0][1], points
        browser.wait_for('document.querySelectorAll("#occupancy polyline, #queue polyline, #throughput polyline").length === 3')
        a.send(cancel=qk.Cancel(request=2))
        b.send(cancel=qk.Cancel(request=1))
        browser.wait_for('document.querySelectorAll("#convergence polyline").length === 0')
        assert browser.rows('slots') == [['nothing runs']]


@tap.test
def names_of_others_are_text_and_nothing_else_runs(browser, case):
    with case.daemon('--http', '127.0.0.1:0') as d, Client(d, user=HOSTILE) as c:
        browser.log()
        c.submit(2, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        browser.open(d)
        browser.wait_for('document.querySelectorAll("#slots tbody tr").length === 2')
        assert browser.ask('document.getElementById("slots").textContent').count(HOSTILE) == 2
        assert browser.ask('document.querySelectorAll("script").length') == 1 and browser.ask('document.querySelector("img")') is None
        assert browser.ask('window.caught === undefined')
        foreign = 'performance.getEntriesByType("resource").filter(e => !e.name.startsWith(location.origin)).length'
        assert browser.ask(foreign) == 0
        # nothing amiss so far; a browser asks for an icon by itself
        amiss = [line for line in browser.log() if 'favicon' not in line['message']]
        assert not amiss, amiss
        # what somebody managed to put into the page would not run either
        browser.ask('(() => { const s = document.createElement("script"); s.textContent = "window.caught = 1"; document.body.append(s);'
                    ' const p = document.createElement("p"); p.setAttribute("onclick", "window.caught = 1"); document.body.append(p);'
                    ' p.click(); })()')
        assert browser.ask('window.caught === undefined')
        assert any('Content Security Policy' in line['message'] for line in browser.log())


@tap.test
def lists_setups_where_there_are_several(browser, case):
    with case.daemon('--http', '127.0.0.1:0', '--slots', '4') as d, Client(d) as c:
        browser.open(d)
        browser.wait_for('document.getElementById("state").textContent === "ready"')
        assert browser.ask('document.getElementById("setups-row").hidden')
        for name, gauge in (('heavy', 'builtin:fake'), ('bad', 'builtin:fake:refuse=104')):
            c.send(load=qk.Load(name=name, gauge=gauge, kappa=0.12))
            c.expect('setup')
        browser.wait_for('document.querySelectorAll("#setups tbody tr").length === 3 && '
                         '!document.getElementById("setups").innerText.includes("ing")')
        rows = {r[0]: r for r in browser.rows('setups')}
        assert rows['main'][1] == 'ready, default' and rows['heavy'][1:3] == ['ready', 'wilson kappa 0.12'], rows
        assert rows['bad'][1] == 'failed: as builtin:fake:refuse=104 wants', rows
        assert '0 of 8' in browser.ask('document.getElementById("tiles").innerText')


@tap.test
def says_when_there_is_no_answer(browser, case):
    with case.daemon('--http', '127.0.0.1:0') as d:
        browser.open(d)
        browser.wait_for('document.getElementById("state").textContent === "ready"')
        d.process.kill()
        browser.wait_for('document.getElementById("state").textContent === "no answer"')
        assert 'does not answer' in browser.ask('document.getElementById("notice").innerText')


@tap.test
def tells_a_load_and_a_loss(browser, case):
    with case.daemon('--http', '127.0.0.1:0', env={'FAKE_LOAD': 'mute'}, wait='engine started') as d:
        browser.open(d)
        browser.wait_for('document.getElementById("state").textContent === "loading"')
        os.kill(d.status_when(lambda s: s.engine.pid).engine.pid, 9)
        browser.wait_for('document.getElementById("notice").innerText.includes("signal 9")')
        browser.wait_for('document.getElementById("about").textContent.includes("engine restarted")')


@tap.test
def fits_narrow_windows_and_both_colours(browser, case):
    with case.daemon('--http', '127.0.0.1:0') as d, Client(d, user='x' * 64) as c:
        c.submit(16, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        browser.open(d)
        browser.wait_for('document.querySelectorAll("#slots tbody tr").length === 16')
        backs = []
        for colours in ('light', 'dark'):
            browser.call('/goog/cdp/execute', cmd='Emulation.setEmulatedMedia',
                         params={'features': [{'name': 'prefers-color-scheme', 'value': colours}]})
            backs.append(browser.ask('getComputedStyle(document.body).backgroundColor'))
        light, dark = (sum(map(int, re.findall(r'\d+', b)[:3])) for b in backs)
        assert light > 600 and dark < 150, backs
        browser.call('/goog/cdp/execute', cmd='Emulation.setDeviceMetricsOverride',
                     params={'width': 380, 'height': 800, 'deviceScaleFactor': 1, 'mobile': False})
        assert browser.ask('document.documentElement.scrollWidth') <= 380


if __name__ == '__main__':
    with Browser() as window:
        tap.run(window, Case(sys.argv[1]))
