#!/usr/bin/env python3
"""What quarkd shows over HTTP, with the engine that only pretends: test_front_http.py QUARKD"""
import base64
import hashlib
import http.client
import json
import math
import os
import re
import signal
import shutil
import socket
import subprocess
import sys
import time

import tap

try:
    import yaml
    from front_case import Case, State, check_solves, fake, kill
    from front_driver import Client, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

SAMPLE = re.compile(r'quarkd_(\w+)(?:\{(.*)\})? (\S+)$')
HTTP = ('--http', '127.0.0.1:0')


def port_of(d):
    return int(d.log(r'over HTTP on 127\.0\.0\.1:(\d+)')[1])


def get(d, path, method='GET', body=None):
    c = http.client.HTTPConnection('127.0.0.1', port_of(d), timeout=30)
    c.request(method, path, body)
    r = c.getresponse()
    text = r.read().decode()
    c.close()
    return r.status, text


def metrics(d):
    """{name or name{labels}: value}; every family has one HELP and one TYPE before its samples."""
    status, text = get(d, '/metrics')
    assert status == 200
    values, family, seen = {}, None, set()
    for line in text.splitlines():
        if line.startswith('# HELP '):
            family = line.split()[2]
            assert family not in seen, family
            seen.add(family)
        elif line.startswith('# TYPE '):
            assert line.split()[2] == family and line.split()[3] in ('gauge', 'counter', 'histogram')
        else:
            m = SAMPLE.match(line)
            assert m and ('quarkd_' + m[1]).startswith(family), line
            key = m[1] + ('{%s}' % m[2] if m[2] else '')
            assert key not in values, key
            values[key] = float(m[3])
    return values


def expect_histogram(values, name, labels, count):
    inside = [(k, v) for k, v in values.items() if k.startswith(name + '_bucket{' + labels)]
    assert len(inside) > 10 and [v for _, v in inside] == sorted(v for _, v in inside), inside
    assert 'le="+Inf"' in inside[-1][0] and inside[-1][1] == count, inside
    assert values[name + '_count' + ('{%s}' % labels.rstrip(',') if labels else '')] == count


@tap.test
def metrics_count_what_happened(case):
    with case.daemon(*HTTP) as d, Client(d) as c:
        before = metrics(d)
        assert before['start_seconds{setup="main",phase="read?",beside="0"}'] == 0.0625
        assert before['start_seconds{setup="main",phase="file",beside="1"}'] == 0.03125
        told = [(p.phase, p.seconds, p.beside) for p in c.status().setup.clock]
        assert told == [('read?', 0.0625, False), ('file', 0.03125, True)], told
        assert before['ready'] == 1 and before['rhs_ended_total{how="converged"}'] == 0 and before['slots{setup="main"}'] == 16
        check_solves(c, 5)
        c.submit(2, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 2)
        during = metrics(d)
        assert during['rhs_running{setup="main"}'] == 2 and during['requests'] == 1 and during['sessions'] == 1
        assert during['memory_used_bytes'] > 0
        c.send(cancel=qk.Cancel(request=2))
        c.results(2)
        v = metrics(d)
        assert v['rhs_ended_total{how="converged"}'] == 5 and v['rhs_ended_total{how="cancelled"}'] == 2
        assert v['requests_accepted_total'] == 2 and v['bytes_in_total'] == v['bytes_out_total'] == 5 * 256 * 24 * 8
        for phase, n in (('upload', 5), ('queue', 7), ('solve', 7), ('fetch', 5)):
            expect_histogram(v, 'rhs_seconds', 'phase="%s",' % phase, n)
        expect_histogram(v, 'rhs_iterations', '', 5)
        expect_histogram(v, 'rhs_residual', '', 5)
        assert v['rhs_iterations_bucket{le="1"}'] == 0 and v['rhs_iterations_bucket{le="3"}'] == 5  # the pretender's three
        assert v['rhs_residual_bucket{le="1e-09"}'] == 0 and v['rhs_residual_bucket{le="1e-08"}'] == 5


@tap.test
def metrics_tell_what_slots_do_while_something_waits(case):
    with case.daemon(*HTTP, '--slots', '2', '--batching', 'fixed') as d, Client(d) as c:
        check_solves(c, 1)
        assert sum(v for k, v in metrics(d).items() if k.startswith('slot_seconds_total') and 'idle' in k) == 0
        c.submit(3, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        d.status_when(lambda s: s.occupancy.saturated > 0.005)
        c.send(cancel=qk.Cancel(request=2, rhs=[0]))
        c.results(1)
        d.status_when(lambda s: s.occupancy.idle > 0.01)
        v = metrics(d)
        assert v['saturated_seconds_total{setup="main"}'] >= v['slot_seconds_total{setup="main",state="idle"}'] > 0
        assert v['slot_seconds_total{setup="main",state="moving"}'] + v['slot_seconds_total{setup="main",state="solving"}'] > 0


@tap.test
def the_walltime_is_there_where_there_is_one(case):
    with case.daemon(*HTTP) as d:
        assert 'walltime_left_seconds' not in metrics(d)
    with case.daemon(*HTTP, '--walltime', '1:00:00') as d:
        assert 3000 < metrics(d)['walltime_left_seconds'] <= 3600


@tap.test
def a_container_asks_whether_it_is_healthy(case):
    healthy = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../deploy/healthy')
    with case.daemon(*HTTP) as d:
        address = '127.0.0.1:%d' % port_of(d)
        assert subprocess.run([healthy, address], timeout=60).returncode == 0
        d.terminate()
    assert subprocess.run([healthy, address], stderr=subprocess.DEVNULL, timeout=60).returncode != 0


@tap.test
def readiness_is_that_of_the_service(case):
    with case.daemon(*HTTP, env={'FAKE_LOAD': 'mute'}, wait=None) as d:
        status, text = get(d, '/readyz')
        assert status == 503 and 'no setup' in text, text
        assert get(d, '/healthz') == (200, 'alive\n')
    with case.daemon(*HTTP) as d, Client(d) as c:
        assert get(d, '/readyz') == (200, 'ready\n')
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.HOLD)
        d.status_when(lambda s: s.counters.running == 1)
        d.process.terminate()
        d.log('draining')
        assert get(d, '/readyz') == (503, 'draining\n') and get(d, '/healthz')[0] == 200
        c.send(cancel=qk.Cancel(request=1))
        c.results(1)
        c.ack(1)
        assert d.wait() == 0


@tap.test
def a_solver_that_makes_no_step_is_not_ready(case):
    with case.daemon(*HTTP, '--engine-timeout', '4') as d, Client(d) as c:
        c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.STALL)
        texts = []
        while not any('no step' in t for t in texts):
            texts.append(get(d, '/readyz')[1])
            assert len(texts) < 2000, texts[-1]
            time.sleep(0.01)
        assert texts[0] == 'ready\n', texts[0]


def fetch(d, path):
    """(headers, body)"""
    c = http.client.HTTPConnection('127.0.0.1', port_of(d), timeout=30)
    c.request('GET', path)
    r = c.getresponse()
    body = r.read().decode()
    c.close()
    assert r.status == 200, (r.status, body)
    return r.headers, body


@tap.test
def status_json_has_curves_and_history(case):
    with case.daemon(*HTTP, '--slots', '3') as d, Client(d, user='<script>"\x7f\x1b') as c:
        check_solves(c, 4)
        c.submit(5, source=qk.SOURCE_POINT, max_iter=fake.PROGRESS, tol=1e-6)
        d.status_when(lambda s: sum(x.iterations == 49 for x in s.activity.slot) == 3, activity=True)
        headers, body = fetch(d, '/status.json')
        o = json.loads(body)
        assert headers['Content-Type'] == 'application/json' and o['state'] == 'STATE_READY', headers
        assert [s['slot'] for s in o['activity']['slot']] == [0, 1, 2] and o['counters']['queued'] == 2, o
        assert o['activity']['user'][0]['name'] == '<script>"??', o['activity']
        for curve in o['curves']:  # residual 1 / (i + 1), begun with 1 at 0
            assert [i for i, _ in curve] == [0] + list(range(50)), curve
            assert all(abs(r + math.log10(i + 1)) < 1e-6 for i, r in curve), curve
        while len(o['history']['rows']) < 2:
            time.sleep(0.02)
            o = json.loads(fetch(d, '/status.json')[1])
        row = dict(zip(o['history']['columns'], o['history']['rows'][-1]))
        assert row['solved'] == 4 and row['bytes_in'] == 4 * 256 * 24 * 8 and row['slots'] > 0 and -4 < row['time'] <= 0, row
        c.send(cancel=qk.Cancel(request=2))
        c.results(5)
        while o['curves'] or o['activity']['slot']:  # it may be half a second old
            time.sleep(0.02)
            o = json.loads(fetch(d, '/status.json')[1])


@tap.test
def the_page_takes_nothing_from_elsewhere(case):
    with case.daemon(*HTTP) as d:
        headers, body = fetch(d, '/')
        assert headers['Content-Type'].startswith('text/html'), headers
        policy = dict(p.split(' ', 1) for p in headers['Content-Security-Policy'].split('; '))
        for part in ('script', 'style'):
            (inline,) = re.findall('<%s>(.*?)</%s>' % (part, part), body, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
            assert policy[part + '-src'] == "'sha256-%s'" % digest, policy
        assert policy['default-src'] == "'none'" and policy['connect-src'] == "'self'" and policy['frame-ancestors'] == "'none'"
        assert headers['X-Content-Type-Options'] == 'nosniff'
        assert set(re.findall(r'https?://[^\'"]+', body)) == {'http://www.w3.org/1999/xhtml', 'http://www.w3.org/2000/svg'}  # names of kinds
        for word in ('innerHTML', 'insertAdjacentHTML', 'document.write', 'eval('):
            assert word not in body, word
        assert fetch(d, '/metrics')[0]['Content-Security-Policy'].startswith("default-src 'none'")


DEPLOY = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'deploy')


def expect_known(expression, samples):
    """Every metric that the expression names is there, with the labels that it is chosen by."""
    for name, labels in re.findall(r'quarkd_(\w+)(?:\{([^}]*)\})?', expression):
        of_name = [s for s in samples if s.split('{')[0] == name]
        assert of_name, '%s: no metric of that name' % name
        for label, value in re.findall(r'(\w+)=~?"([^"]*)"', labels):
            assert label == 'instance' or any('%s="%s"' % (label, value) in s for s in of_name), (name, label, value)
    for label in re.findall(r'by \(([^)]*)\)', expression):
        for word in re.split(', *', label):
            assert word == 'instance' or any(word + '="' in s for s in samples), (expression, word)


@tap.test
def metrics_tell_of_an_engine_that_was_taken_over(case):
    name = 'engine_adopted{setup="main"}'
    with State(case) as state, state.fronts() as front:
        with front(*HTTP) as d:
            assert metrics(d)[name] == 0
            kill(d)
        with front(*HTTP) as d:
            pid = d.status_when(lambda s: s.state == qk.STATE_READY).engine.pid
            assert metrics(d)[name] == 1
            os.kill(pid, signal.SIGKILL)
            d.status_when(lambda s: s.state == qk.STATE_READY and s.engine.pid != pid)
            assert metrics(d)[name] == 0


@tap.test
def metrics_and_status_tell_of_the_sign_function_of_overlap_fermions(case):
    name = 'sign_square_error{setup="main"}'
    with case.daemon(*HTTP, gauge='builtin:fake:sign') as d:
        assert metrics(d)[name] == 2e-11 and metrics(d)['sign_bound{setup="main"}'] == 0.25
        s = d.status_when(lambda s: s.state == qk.STATE_READY).setup.sign
        assert (s.vectors, s.lowest, s.bound, s.fractions, s.order, s.square, s.ginsparg_wilson) == (20, 0.125, 0.25, False, 200, 2e-11, 1e-11), s
    with case.daemon(*HTTP) as d:
        assert name not in metrics(d)
        assert not d.status_when(lambda s: s.state == qk.STATE_READY).setup.HasField('sign')


@tap.test
def the_dashboard_names_metrics_that_exist(case):
    with open(os.path.join(DEPLOY, 'grafana.json'), encoding='utf-8') as f:
        board = json.load(f)
    with case.daemon(*HTTP, '--solver', 'mg', '--mg-checkpoint', 'off', '--replicas', '2', gauge='builtin:fake:sign') as d:
        samples = list(metrics(d))
    source = {'type': 'prometheus', 'uid': '${datasource}'}
    names = {v['name'] for v in board['templating']['list']}
    assert names == {'datasource', 'instance'} and board['schemaVersion'] >= 39
    places = set()
    for panel in board['panels']:
        p = panel['gridPos']
        cells = {(x, y) for x in range(p['x'], p['x'] + p['w']) for y in range(p['y'], p['y'] + p['h'])}
        assert not cells & places and p['x'] + p['w'] <= 24, panel['title']
        places |= cells
        assert panel['targets'] and panel['datasource'] == source and panel['description'], panel['title']
        for target in panel['targets']:
            assert target['datasource'] == source and 'quarkd_' in target['expr'] and '$instance' in target['expr'], target
            expect_known(target['expr'], samples)
    assert len({p['id'] for p in board['panels']}) == len(board['panels']) > 10
    shown = set(re.findall(r'quarkd_(\w+?)(?:_bucket|_sum|_count)?\b', json.dumps(board)))
    there = {re.sub('_(bucket|sum|count)$', '', s.split('{')[0]) for s in samples}
    assert there <= shown, there - shown  # a metric that nobody sees
    with open(os.path.join(DEPLOY, '..', 'docs', 'operations.md'), encoding='utf-8') as f:
        told = f.read()
    assert not [name for name in there if not re.search(r'\b(quarkd_)?%s\b' % name, told)]


@tap.test
def the_alerts_name_metrics_that_exist(case):
    path = os.path.join(DEPLOY, 'alerts.yml')
    with open(path, encoding='utf-8') as f:
        rules = [rule for group in yaml.safe_load(f)['groups'] for rule in group['rules']]
    with case.daemon(*HTTP, '--solver', 'mg', '--mg-checkpoint', 'off') as d:
        samples = list(metrics(d))
    assert len(rules) > 5 and len({r['alert'] for r in rules}) == len(rules)
    for rule in rules:
        assert set(rule) <= {'alert', 'expr', 'for', 'labels', 'annotations'} and rule['labels']['severity'], rule
        assert set(rule['annotations']) == {'summary', 'description'}, rule
        expect_known(rule['expr'], samples)
    if shutil.which('promtool'):
        done = subprocess.run(['promtool', 'check', 'rules', path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done


@tap.test
def what_is_not_there_is_refused_and_nobody_notices(case):
    with case.daemon(*HTTP) as d, Client(d) as c:
        assert get(d, '/nothing')[0] == 404 and get(d, '/../etc/passwd')[0] == 404
        assert get(d, '/metrics', 'POST', b'x' * 100000)[0] == 405 and get(d, '/metrics', 'DELETE')[0] == 405
        assert get(d, '/metrics', 'HEAD') == (200, '')
        address = ('127.0.0.1', port_of(d))
        held = [socket.create_connection(address, timeout=30) for _ in range(40)]  # more than it takes
        for i, s in enumerate(held):
            s.sendall((b'\x00\xff' * 50, b'GET /metrics HTTP/1.1\r\nX: ' + b'y' * 30000, b'GET ')[i % 3])
        check_solves(c)
        for s in held:
            s.close()
        while get_or_none(d) != 200:
            time.sleep(0.05)
        check_solves(c)


def get_or_none(d):
    try:
        return get(d, '/healthz')[0]
    except OSError:
        return None


@tap.test
def an_address_that_cannot_be_is_named(case):
    gauge = ('--gauge', 'builtin:weak:4x4x4x4:1', '--mass', '0.1', '--listen', 'tcp://127.0.0.1:0', '--engine', '/bin/true')
    for address in ('nonsense', 'localhost:9', '127.0.0.1:', '127.0.0.1:99999', ':80'):
        end = case.run(*gauge, '--http', address)
        assert end.returncode == 78 and address in end.stderr, (address, end)
    with socket.create_server(('127.0.0.1', 0)) as taken:
        end = case.run(*gauge, '--http', '127.0.0.1:%d' % taken.getsockname()[1])
        assert end.returncode == 69 and 'http' in end.stderr, end


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
