#!/usr/bin/env python3
"""Files and numbers that quarkctl and quarkd are given and must not believe: test_inputs.py QUARKD QUARKCTL"""
import os
import subprocess
import sys
import tempfile

import tap

try:
    import h5py
    import numpy as np
except ImportError as missing:
    tap.skip_all('python3-h5py and numpy are needed: %s' % missing)

SHAPE = (1, 2, 2, 2, 2, 4, 3)
USAGE, DATA = 64, 65
PATIENCE = 60  # seconds after which a program hangs


class Case:
    def __init__(self, quarkd, quarkctl):
        self.quarkd, self.quarkctl = quarkd, quarkctl


class Folder:
    """Files of somebody else, and what quarkctl says of them without a daemon."""

    def __init__(self, case):
        self.case, self.made = case, tempfile.TemporaryDirectory()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.made.cleanup()

    def __call__(self, name):
        return os.path.join(self.made.name, name)

    def refused(self, *words, name='in.h5', more=(), command='solve'):
        args = ['solve', '--in', self(name), '--out', self('out.h5')] if command == 'solve' else [command, self(name)]
        done = subprocess.run([self.case.quarkctl, *args, *more, '--endpoint=ipc:///nobody/is/there', '--timeout=0'],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == DATA, done
        for word in (self(name), *words):
            assert word in done.stderr, (word, done.stderr)
        assert not os.path.exists(self('out.h5'))


@tap.test
def what_is_no_regular_file_is_named(case):
    """A FIFO that nobody writes to makes nobody wait; a folder is called one."""
    with Folder(case) as f:
        os.mkfifo(f('fifo'))
        os.symlink(f('fifo'), f('link'))
        os.mkdir(f('dir'))
        for command in 'solve', 'correlator':
            f.refused('is a FIFO: an HDF5 file is needed', name='fifo', command=command)
            f.refused('is a FIFO: an HDF5 file is needed', name='link', command=command)
            f.refused('is a folder: an HDF5 file is needed', name='dir', command=command)
        f.refused('No such file', name='none')


@tap.test
def links_to_other_objects_and_files_are_not_followed(case):
    with Folder(case) as f:
        with h5py.File(f('secret.h5'), 'w') as h:
            h['field'] = np.zeros(SHAPE, complex)
        for name in 'field', 'other':
            with h5py.File(f('in.h5'), 'w') as h:
                h[name] = h5py.ExternalLink('secret.h5', '/field')
            f.refused('object "%s" is a link into another file, which is not followed' % name)
            with h5py.File(f('in.h5'), 'w') as h:
                h.create_group('g')['field'] = np.zeros(SHAPE, complex)
                h[name] = h5py.SoftLink('/g/field')
            f.refused('object "%s" is a soft link, which is not followed' % name)
        with h5py.File(f('in.h5'), 'w') as h:  # on the way
            h['a'] = h5py.ExternalLink('secret.h5', '/')
            h.create_group('b')['c'] = h5py.ExternalLink('secret.h5', '/')
        f.refused('object "a" is a link into another file', more=['--dataset=a/field'])
        f.refused('object "/b/c" is a link into another file', more=['--dataset=/b/c//field'])
        f.refused('has no object "b/d"', more=['--dataset=b/d/field'])
        with h5py.File(f('in.h5'), 'w') as h:
            h['field'] = np.zeros(SHAPE, complex)
            h['columns'] = h5py.ExternalLink('secret.h5', '/field')
        f.refused('object "columns" is a link into another file')


@tap.test
def numbers_in_other_files_are_not_read(case):
    with Folder(case) as f:
        with open(f('secret'), 'wb') as s:
            s.write(bytes(int(np.prod(SHAPE)) * 16))
        with h5py.File(f('in.h5'), 'w') as h:
            h.create_dataset('field', SHAPE, complex, external=[(f('secret'), 0, h5py.h5f.UNLIMITED)])
        f.refused('the numbers of dataset "field" stand in another file, %s, which is not opened' % f('secret'))
        with h5py.File(f('secret.h5'), 'w') as h:
            h['field'] = np.zeros(SHAPE, complex)
        layout = h5py.VirtualLayout(SHAPE, complex)
        layout[:] = h5py.VirtualSource(f('secret.h5'), 'field', SHAPE)
        with h5py.File(f('in.h5'), 'w', libver='latest') as h:
            h.create_virtual_dataset('field', layout)
        f.refused('the numbers of dataset "field" stand in other files, which are not opened')


@tap.test
def pieces_of_correlators_are_in_their_file(case):
    with Folder(case) as f:
        for link in h5py.ExternalLink('secret.h5', '/a'), h5py.SoftLink('/a'):
            with h5py.File(f('in.h5'), 'w') as h:
                h.attrs['format'], h.attrs['format_version'] = 'quarkd correlators', np.int32(1)
                h.create_group('a').create_group('b')['c'] = link
            f.refused('object "a/b/c" is a link, which is not followed', command='correlator')


@tap.test
def numbers_are_told_as_they_are_in_the_file(case):
    """Of a dataset of 2^40 right-hand sides, of which nothing was written."""
    with Folder(case) as f:
        for shape, word in (((2**40,) + SHAPE[1:], 'field has 1099511627776 right-hand sides, must be 1 to 16777216'),
                            ((2**63,) + SHAPE[1:], 'right-hand sides, must be 1 to 16777216'),
                            ((1, 2**40) + SHAPE[2:], 'field has 1099511627776 sites in t, must be 1 to 65536'),
                            ((1, 2, 2, 2, 2**33, 4, 3), 'field has 8589934592 sites in x, must be 1 to 65536'),
                            ((1, 65536, 65536, 2, 2, 4, 3), '17179869184 sites, at most 2147483647'),
                            ((0,) + SHAPE[1:], '0 right-hand sides, must be 1 to'),
                            ((1, 2, 2, 2, 2, 4, 2**40), 'field ends in [4][1099511627776]')):
            try:
                with h5py.File(f('in.h5'), 'w') as h:
                    h.create_dataset('field', shape, np.complex64, chunks=(1,) + tuple(min(n, 4) for n in shape[1:]),
                                     maxshape=(None,) + shape[1:])
            except (ValueError, OverflowError, OSError):
                continue  # HDF5 itself has its limits
            f.refused(word)


def complaint(case, *args):
    done = subprocess.run([case.quarkd, '--gauge=builtin:weak:4x4x4x4:1', '--engine=' + sys.executable, '--listen=tcp://127.0.0.1:0', *args], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE)
    assert done.returncode in (USAGE, 78), done
    return done.stderr


@tap.test
def settings_say_what_is_wrong_with_them(case):
    for given, word in (('/', '"/" is the whole file system: name folders below it'), ('//', '"//" is the whole file system'),
                        ('rel/dir', '"rel/dir" is no absolute path'), ('', 'one of the folders has no name: is there a colon too many?'),
                        ('/tmp::/tmp', 'one of the folders has no name')):
        said = complaint(case, '--kappa=0.12', '--file-roots=' + given)
        assert 'file-roots: ' + word in said, (given, said)
    for setting in 'kappa=0.12 ', 'kappa= 0.12', 'kappa=0.12\r', 'slots=4 ', 'max-memory=1 G':
        said = complaint(case, *(['--kappa=0.12'] if 'kappa' not in setting else []), '--' + setting)
        assert 'take the blanks away' in said, (setting, said)
    assert 'blanks' not in complaint(case, '--kappa=x')


@tap.test
def numbers_of_quarkctl_are_taken_without_blanks(case):
    for option, word in (('--kappa=0.12 ', 'must be a number from -1e+06 to 1e+06, without blanks'),
                         ('--slots=4 ', 'must be an integer from 0 to 64, without blanks')):
        done = subprocess.run([case.quarkctl, 'load', 'x', option], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE)
        assert done.returncode == USAGE and word in done.stderr, done


if __name__ == '__main__':
    tap.run(Case(*sys.argv[1:3]))
