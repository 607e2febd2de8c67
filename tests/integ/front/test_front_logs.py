#!/usr/bin/env python3
"""The log of quarkd as JSON, with the engine that only pretends: test_front_logs.py QUARKD"""
import json
import re
import sys

import tap

try:
    from front_case import Case, check_solves, fake
    from front_driver import Client, STATUS, qk
except (ImportError, OSError) as e:
    tap.skip_all(str(e))

KEYS = ['time', 'level', 'program', 'rank', 'subsystem', 'job', 'text']
TIME = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z')


def objects(lines):
    """Every line as an object, checked."""
    out = []
    for line in lines:
        o = json.loads(line)
        assert list(o) == KEYS and TIME.fullmatch(o['time']), line
        assert o['level'] in ('error', 'warn', 'info', 'debug'), line
        assert all(isinstance(o[k], str) for k in ('program', 'subsystem', 'text')), line
        assert o['job'] is None or re.fullmatch(r'[0-9a-f]+(/\d+)?', o['job']), line
        out.append(o)
    return out


@tap.test
def every_line_of_a_run_is_an_object(case):
    """Clients, a refusal, a client with a name that is no text, an engine that dies and one that says what is no log line."""
    says = 'libfoo: "warning"\n\x1b[31m\n\n{"time":"never"\n' + 'y' * 10000 + '\nno end'
    with case.daemon('--log-format', 'json', env={'FAKE_SAYS': says}) as d:
        with Client(d) as c:
            check_solves(c)
            c.submit(1, source=qk.SOURCE_POINT, tol=7, expect='rejected')
            c.submit(1, source=qk.SOURCE_POINT, max_iter=fake.DIE)
            assert c.results(1)[0].status == STATUS['ENGINE_LOST']
            c.send(goodbye=qk.Goodbye())
        with Client(d, hello=False) as c:
            # Python's protobuf makes strings of text alone: what is none is put in afterwards
            hello = qk.Hello(version=1, client_id=c.client_id, user='uuuu', program='x"}\n{"y\\').SerializeToString()
            hello = hello.replace(b'uuuu', b'\xff\xed"\n')
            c.control.send(b'\x0a' + bytes([len(hello)]) + hello)
            assert c.expect('welcome')
        assert d.terminate() == 0
        d.reader.join()
        lines = objects(d.lines)
    texts = [o['text'] for o in lines]
    assert any(o['job'] and '/' in o['job'] for o in lines) and any(o['program'] == 'quarkd' for o in lines)
    assert any(o['level'] == 'error' and 'engine lost' in o['text'] for o in lines)
    said = [o['text'] for o in lines if o['subsystem'] == 'engine']
    assert 'libfoo: "warning"' in said and '\x1b[31m' in said and '{"time":"never"' in said and any(s.startswith('no end') for s in said), said
    assert sum(len(t) for t in said if set(t) == {'y'}) > 5000, said
    assert any('rejected' in t and 'tol' in t for t in texts)


@tap.test
def lines_of_an_engine_stay_whole_in_text(case):
    with case.daemon(env={'FAKE_SAYS': 'first\n' + 'z' * 3000 + '\nlast\n'}) as d:
        assert d.terminate() == 0
        d.reader.join()
        assert 'first\n' in d.lines and 'z' * 3000 + '\n' in d.lines and 'last\n' in d.lines


if __name__ == '__main__':
    tap.run(Case(sys.argv[1]))
