#!/usr/bin/env python3
"""The unit for systemd, by systemd's own tools: test_unit.py UNIT QUARKD"""
import configparser
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap

EXPOSURE = 5.0  # of 10; systemd calls it OK below


def analyze(*args):
    return subprocess.run(['systemd-analyze', *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


class Unit:
    """An instance of it, with the program that was just built."""

    def __init__(self, path, quarkd):
        if not shutil.which('systemd-analyze'):
            tap.skip_all('no systemd-analyze here')
        self.folder = tempfile.TemporaryDirectory(prefix='qk-unit-')
        self.file = os.path.join(self.folder.name, 'quarkd@test.service')
        with open(path, encoding='utf-8') as f:
            text, n = re.subn(r'(?m)^ExecStart=\S+/quarkd ', 'ExecStart=%s ' % quarkd, f.read())
        assert n == 1, text
        with open(self.file, 'w', encoding='utf-8') as f:
            f.write(text)
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.optionxform = str
        parser.read_string(text)
        self.service, self.unit = parser['Service'], parser['Unit']


@tap.test
def systemd_understands_every_line(unit):
    done = analyze('verify', '--man=no', unit.file)
    # what it says of other units of this machine is not ours
    ours = [line for line in (done.stdout + done.stderr).splitlines() if 'quarkd@' in line]
    assert not ours, ours


@tap.test
def a_line_that_is_wrong_is_found(unit):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'quarkd@wrong.service')
        with open(unit.file, encoding='utf-8') as f, open(path, 'w', encoding='utf-8') as out:
            out.write(f.read().replace('[Service]\n', '[Service]\nSuccesExitStatus=75\n'))
        done = analyze('verify', '--man=no', path)
        assert any('quarkd@' in line and 'SuccesExitStatus' in line for line in (done.stdout + done.stderr).splitlines()), done


@tap.test
def it_lets_go_of_what_it_does_not_need(unit):
    done = analyze('security', '--offline=true', '--no-pager', unit.file)
    if 'unrecognized option' in done.stderr:
        raise tap.Skip('this systemd-analyze takes no file')
    m = re.search(r'Overall exposure level for \S+: ([\d.]+)', done.stdout)
    assert m and float(m[1]) <= EXPOSURE, done.stdout[-2000:] + done.stderr


@tap.test
def no_group_is_needed_that_a_host_may_lack(unit):
    assert 'SupplementaryGroups' not in unit.service


@tap.test
def each_exit_code_has_its_consequence(unit):
    """As docs/operations.md tells them: refused ones do not come again, work that is left is no failure, and what fails for ever ends."""
    s = unit.service
    assert s['Restart'] == 'on-failure' and s['RestartPreventExitStatus'].split() == ['64', '65', '78']
    assert s['SuccessExitStatus'] == s['RestartForceExitStatus'] == '75'
    burst, interval, pause = int(unit.unit['StartLimitBurst']), int(unit.unit['StartLimitIntervalSec']), int(s['RestartSec'])
    assert burst * (pause + 10) < interval, 'ten starts that fail within ten seconds each never reach the limit'


if __name__ == '__main__':
    tap.run(Unit(*map(os.path.abspath, sys.argv[1:])))
