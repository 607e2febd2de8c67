"""The least of a test runner: functions marked with @test run in order and report in TAP.

A test fails by an exception; Skip(reason) skips it. run() prints the plan and exits 1 where a test failed.
"""
import os
import sys
import tempfile
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


def run(*arguments, beside=1):
    """Every test is called with the arguments. beside: so many run at a time, each in a process of its own; for tests that wait more than
    they work, and share nothing."""
    print('1..%d' % len(tests), flush=True)
    if beside > 1:
        bad = _run_beside(beside, arguments)
    else:
        bad = sum(not _call(number, function, arguments) for number, function in enumerate(tests, 1))
    sys.exit(1 if bad else 0)


def _call(number, function, arguments):
    """Whether it did not fail."""
    name = function.__name__
    start = time.monotonic()
    good = True
    try:
        function(*arguments)
        print('ok %d - %s' % (number, name), flush=True)
    except Skip as reason:
        print('ok %d - %s # SKIP %s' % (number, name, reason), flush=True)
    except Exception:
        good = False
        for line in traceback.format_exc().splitlines():
            print('# ' + line)
        print('not ok %d - %s' % (number, name), flush=True)
    print('# %.1f s' % (time.monotonic() - start), flush=True)
    return good


def _begin(number, arguments):
    """A process with the test, and the file that it writes into."""
    output = tempfile.TemporaryFile()
    pid = os.fork()
    if pid == 0:
        status = 2
        try:
            os.dup2(output.fileno(), 1)
            status = 0 if _call(number, tests[number - 1], arguments) else 1
        finally:
            os._exit(status)
    return pid, output


def _run_beside(beside, arguments):
    """How many failed. What they print comes in order."""
    waiting, running, ended, told, bad = list(range(1, len(tests) + 1)), {}, {}, 1, 0
    while waiting or running:
        while waiting and len(running) < beside:
            number = waiting.pop(0)
            pid, output = _begin(number, arguments)
            running[pid] = number, output
        pid, status = os.wait()
        number, output = running.pop(pid)
        bad += status != 0
        with output:
            output.seek(0)
            ended[number] = output.read()
        if os.waitstatus_to_exitcode(status) not in (0, 1):
            ended[number] += b'not ok %d - %s: its process ended with %d\n' % (
                number, tests[number - 1].__name__.encode(), os.waitstatus_to_exitcode(status))
        while told in ended:
            sys.stdout.buffer.write(ended.pop(told))
            sys.stdout.flush()
            told += 1
    return bad
