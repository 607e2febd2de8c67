"""quarkctl with sources and solutions in files that the daemon opens: test_files_cli.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import os
import subprocess
import sys
import tempfile

from cli_case import DATA, SHAPE, USAGE, Case, h5py, np, random_sources, read_field, ref, tap
from daemon import LIMIT


class Place:
    """A root and a daemon that opens files there."""

    def __init__(self, case, *options):
        self.folder = tempfile.TemporaryDirectory()
        self.root = os.path.realpath(self.folder.name)
        self.daemon = case.daemon('--drain-timeout=9', '--file-roots', self.root, *options)

    def __enter__(self):
        return self, self.daemon.__enter__()

    def __exit__(self, *what):
        self.daemon.__exit__(*what)
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.root, name)

    def read(self, name, dtype=complex, offset=0):
        return np.fromfile(self.path(name), dtype, offset=offset).reshape((-1,) + SHAPE)


@tap.test
def a_propagator_goes_to_a_file_of_the_daemon(case):
    with Place(case) as (p, d):
        done = d.ctl('propagator', '--source=point:1,2,3,5', '--tol=1e-10', '--sink=file:%s,offset=16' % p.path('p.raw'), '--json')
        assert done.code == 0 and done.json['out'] == p.path('p.raw') and {r['status'] for r in done.json['rhs']} == {'OK'}, done
        assert done.json['clocks'] is None, done
        x = p.read('p.raw', offset=16)
        assert x.shape[0] == 12 and [n for n in os.listdir(p.root) if n[0] != '.'] == ['p.raw']
        for i in range(12):
            assert case.residual(x[i], ref.point_source(case.op, i // 3, i % 3, (5, 3, 2, 1))) < 1.1e-10
        counters = d.ctl('status', '--json').json['counters']
        assert counters['bytes_out'] == 0 and counters['requests'] == 0
        done = d.ctl('propagator', '--source=point:0,0,0,0', '--sink=file:' + p.path('p.raw'))
        assert done.code == DATA and 'it is not replaced' in done.out, done
        done = d.ctl('sequential', '--source=point:0,0,0,0', '--sink-time=2', '--sink=file:' + p.path('s.raw'))
        assert done.code == 0 and 'written to ' + p.path('s.raw') in done.out and p.read('s.raw').shape[0] == 12, done


@tap.test
def right_hand_sides_come_from_a_file_of_the_daemon(case):
    """Raw, and the contiguous dataset of an HDF5 file; to a file here, and there; relative to the folder one is in."""
    b = random_sources(3)
    with Place(case) as (p, d):
        b.tofile(p.path('b.raw'))
        with h5py.File(p.path('b.h5'), 'w') as f:
            f['field'] = b
        with h5py.File(p.path('b.h5'), 'r') as f:
            offset = f['field'].id.get_offset()
        whole = 'file:%s,nrhs=3' % p.path('b.raw')
        inside = 'file:%s,offset=%d,nrhs=3,size=%d' % (p.path('b.h5'), offset, os.path.getsize(p.path('b.h5')))
        for source in (whole, inside):
            done = d.ctl('solve', '--source', source, '--out', d.path('x.h5'), '--tol=1e-10', '--json')
            assert done.code == 0 and done.json['source'] == source, done
            x = read_field(d.path('x.h5'))
            assert max(case.residual(x[i], b[i]) for i in range(3)) < 1.1e-10
            with h5py.File(d.path('x.h5'), 'r') as f:
                assert set(f['columns']['source']) == {b'file'} and f.attrs['source'] == source[:127]
        done = d.ctl('solve', '--source=file:b.raw,nrhs=3', '--sink=file:x.raw', '--tol=1e-10', cwd=p.root)
        assert done.code == 0 and np.allclose(p.read('x.raw'), x, rtol=0, atol=1e-8 * np.abs(x).max()), done
        left = d.ctl('solve', '--source', whole, '--out', d.path('y.h5'), '--tol=1e-10', '--detach', '--json')
        assert left.code == 0 and d.ctl('fetch', left.json['ticket']).code == 0, left
        assert np.allclose(read_field(d.path('y.h5')), x, rtol=0, atol=1e-8 * np.abs(x).max())
        done = d.ctl('solve', '--source=file:' + p.path('b.raw'), '--out', d.path('z.h5'), '--json')
        assert done.code == DATA and [r['status'] for r in done.json['rhs']] == ['BAD_ARGUMENT'] and done.json['out'] is None, done
        assert done.json['rhs'][0]['true_residual'] is None, done  # there was no solve
        assert 'b.raw has %d bytes, not %d' % (b.nbytes, b.nbytes // 3) in done.json['rhs'][0]['text'], done
        done = d.ctl('solve', '--source=file:/etc/passwd', '--out', d.path('z.h5'))
        assert done.code == DATA and 'below none of the file-roots' in done.err and not os.path.exists(d.path('z.h5')), done


@tap.test
def wrong_usage_names_the_option(case):
    for args, word in ((('solve', '--source=b.raw', '--out=x'), '--source=b.raw: must be file:PATH'),
                       (('solve', '--source=file:', '--out=x'), '--source=file:'), (('solve', '--out=x'), '--in or --source'),
                       (('solve', '--in=a', '--source=file:b', '--out=x'), '--in or --source'),
                       (('solve', '--source=file:b,nrhs=1025', '--out=x'), '1 to 1024'),
                       (('solve', '--source=file:b', '--dataset=c', '--out=x'), '--dataset'),
                       (('solve', '--in=b.h5', '--sink=file:x,nrhs=2'), '--sink=file:x,nrhs=2'),
                       (('solve', '--in=b.h5', '--sink=file:x', '--out=y'), '--out and --sink'),
                       (('solve', '--in=b.h5', '--sink=file:x', '--detach'), '--detach needs --out'),
                       (('correlator', '--source=point:0,0,0,0', '--sink=file:x'), '--sink is for')):
        done = case.ctl(*args)
        assert done.code == USAGE and word in done.err, (args, done)


@tap.test
def a_full_disk_is_told(case):
    """A file system of 64 kB, where this user may make one."""
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'none', folder], stderr=subprocess.DEVNULL).returncode:
            raise tap.Skip('no file system of a given size can be mounted')
        try:
            with case.daemon('--drain-timeout=9', '--file-roots', folder) as d:
                done = d.ctl('propagator', '--source=point:0,0,0,0', '--sink=file:' + os.path.join(folder, 'p.raw'))
                assert done.code == DATA and 'No space left on device' in done.out and os.listdir(folder) == [], done
        finally:
            subprocess.run(['umount', folder], check=True, timeout=LIMIT)


tap.run(Case(*map(os.path.abspath, sys.argv[1:])))
