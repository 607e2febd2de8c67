#!/usr/bin/env python3
"""The counting of tests/run, on made-up results.

usage: test_run.py SOURCE_ROOT        prints TAP
"""
import importlib.machinery
import importlib.util
import os
import sys

sys.dont_write_bytecode = True
CASES = [
    ('counts test by test', {'result': 'OK', 'stdout': 'TAP version 13\n1..2\nok - a::b (0.1s)\nok 2 - c\n'}, (2, 0, 0)),
    ('keeps the reason of a skip', {'result': 'OK', 'stdout': '1..2\nok 1\nok - g # SKIP no GPU\n'}, (1, 0, 1)),
    ('takes a failed test', {'result': 'FAIL', 'stdout': '1..2\nok 1\nnot ok 2 - d\n'}, (1, 1, 0)),
    ('counts what a crash left out', {'result': 'ERROR', 'stdout': '1..5\nok 1\n'}, (1, 1, 0)),
    ('takes a bad end after good tests', {'result': 'ERROR', 'stdout': '1..1\nok 1\n'}, (1, 1, 0)),
    ('takes a program that skips all', {'result': 'SKIP', 'stdout': '1..0 # SKIP no data\n'}, (0, 0, 1)),
    ('counts a plain program as one', {'result': 'OK', 'stdout': 'fine\n'}, (1, 0, 0)),
    ('counts a plain failure as one', {'result': 'FAIL', 'stdout': '', 'returncode': 1}, (0, 1, 0)),
    ('takes a time-out', {'result': 'TIMEOUT', 'stdout': '1..2\nok 1\nok 2\n'}, (2, 1, 0)),
    ('takes a plain skip', {'result': 'SKIP', 'stdout': 'no device\n'}, (0, 0, 1)),
]


GOOD, BAD = {'result': 'OK', 'stdout': '1..1\nok 1\n'}, {'result': 'FAIL', 'stdout': '1..1\nnot ok 1 - a\n'}
AGAIN = [  # what failed at first, at most how many, the second run, passed and failed and unsteady then
    ('what passes alone is unsteady', ['b'], 1, {'b': GOOD}, (2, 0, 1)),
    ('what fails twice has failed', ['b'], 1, {'b': BAD}, (1, 1, 0)),
    ('one of two passes alone', ['a', 'b'], 2, {'a': GOOD, 'b': BAD}, (1, 1, 1)),
    ('too many are not run again', ['a', 'b'], 1, {'a': GOOD, 'b': GOOD}, (0, 2, 0)),
    ('nothing is run again for nothing', [], 1, {}, (2, 0, 0)),
    ('a program that does not report again has failed', ['b'], 1, {}, (1, 1, 0)),
]


def again(run, failed, most, second):
    entries = [{**(BAD if name in failed else GOOD), 'name': 'quarkd:x / ' + name} for name in 'ab']

    def meson_test(_, arguments):
        assert failed and arguments == ['--num-processes', '1', '-t', '5', *failed], arguments
        ended = [{**entry, 'name': 'quarkd:x / ' + name} for name, entry in second.items()]
        return ended, any(e['result'] != 'OK' for e in ended)
    entries, unsteady = run.run_again('build', ['--suite', 'x', '-t', '5'], entries, most, meson_test)
    return sum(run.count(e)[0] for e in entries), sum(len(run.count(e)[1]) for e in entries), len(unsteady)


def main():
    loader = importlib.machinery.SourceFileLoader('run', os.path.join(sys.argv[1], 'tests', 'run'))
    run = importlib.util.module_from_spec(importlib.util.spec_from_loader('run', loader))
    loader.exec_module(run)
    print(f'1..{len(CASES) + len(AGAIN)}')
    for name, entry, want in CASES:
        passed, failed, skipped = run.count(entry)
        report(name, (passed, len(failed), len(skipped)), want)
    for name, failed, most, second, want in AGAIN:
        report(name, again(run, failed, most, second), want)


def report(name, got, want):
    print(f"{'ok' if got == want else 'not ok'} - {name}{'' if got == want else f': {got}, expected {want}'}")


main()
