"""The least of a test runner: functions marked with @test run in order and report in TAP.

A test fails by an exception; Skip(reason) skips it. run() prints the plan and exits 1 where a test failed.
"""
import sys
import time
import traceback

tests = []


class Skip(Exception):
    pass


def test(function):
    tests.append(function)
    return function


def skip_all(reason):
    print('1..0 # SKIP ' + reason)
    sys.exit(0)


def run(*arguments):
    """Every test is called with the arguments."""
    bad = 0
    print('1..%d' % len(tests), flush=True)
    for number, function in enumerate(tests, 1):
        name = function.__name__
        start = time.monotonic()
        try:
            function(*arguments)
            print('ok %d - %s' % (number, name), flush=True)
        except Skip as reason:
            print('ok %d - %s # SKIP %s' % (number, name, reason), flush=True)
        except Exception:
            bad += 1
            for line in traceback.format_exc().splitlines():
                print('# ' + line)
            print('not ok %d - %s' % (number, name), flush=True)
        print('# %.1f s' % (time.monotonic() - start), flush=True)
    sys.exit(1 if bad else 0)
