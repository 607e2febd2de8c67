"""quark-gauge as a user sees it: test_quark_gauge.py QUARK_GAUGE

What it converts is read by the numpy oracle.
"""
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile

import tap
try:
    import numpy as np
    import ref_dirac as ref
    import smear_ref
except ImportError as missing:
    tap.skip_all('numpy and scipy are needed: %s' % missing)

DATA = os.environ.get('QK_DATA', '../shared/data')
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..')
WEAK = 'builtin:weak:2x4x6x8:7'
KEYS = {'file', 'format', 'bits', 'dims', 'plaquette', 'planes', 'link_trace', 'checksum', 'unitarity', 'determinant',
        'digest', 'header_plaquette', 'header_link_trace'}
USAGE, DATA_ERROR = 64, 65


def call(exe, *args):
    return subprocess.run([exe, *args], capture_output=True, text=True, timeout=120)


def info(exe, *args):
    done = call(exe, 'info', '--json', *args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def data(name):
    path = os.path.join(DATA, name)
    if not os.path.exists(path):
        raise tap.Skip('no reference data: set QK_DATA')
    return path


@tap.test
def info_has_its_keys(exe):
    found = info(exe, WEAK)
    assert set(found) == KEYS, found
    assert found['dims'] == [2, 4, 6, 8] and found['format'] == 'builtin weak' and found['checksum'] == 'none'
    assert found['unitarity'] < 1e-14 and list(found['planes']) == ['xy', 'xz', 'xt', 'yz', 'yt', 'zt']
    assert abs(np.mean(list(found['planes'].values())) - found['plaquette']) < 1e-14


@tap.test
def info_without_json_is_a_table(exe):
    done = call(exe, 'info', WEAK)
    assert done.returncode == 0 and done.stderr == ''
    words = dict(line.split(None, 1) for line in done.stdout.splitlines() if not line.startswith(' '))
    assert words['lattice'].startswith('2 x 4 x 6 x 8')
    assert words['digest'] == info(exe, WEAK)['digest']


@tap.test
def converted_files_are_read_by_the_oracle(exe):
    with tempfile.TemporaryDirectory() as folder:
        for name, bits, load in (('a.lime', 64, ref.load_lime), ('b.ildg', 32, ref.load_lime),
                                 ('c.nersc', 64, ref.load_nersc), ('d.nersc', 32, ref.load_nersc)):
            path = os.path.join(folder, name)
            done = call(exe, 'convert', '--json', '--bits=%d' % bits, WEAK, path)
            assert done.returncode == 0, done.stderr
            told = json.loads(done.stdout)
            links, header = load(path)
            found = info(exe, path)
            assert header.get('checksum_ok', True) and found['checksum'] == 'ok'
            assert abs(ref.plaquette(links) - found['plaquette']) < 1e-12
            assert abs(told['plaquette'] - found['plaquette']) < (1e-12 if bits == 64 else 1e-6)
            assert links.shape[1:5] == (8, 6, 4, 2)
            assert (found['digest'] == info(exe, WEAK)['digest']) == (bits == 64)
            for key in ('plaquette', 'link_trace'):
                if key in header:
                    assert found['header_' + key] == header[key]
        assert sorted(os.listdir(folder)) == ['a.lime', 'b.ildg', 'c.nersc', 'd.nersc']


@tap.test
def bits_and_format_follow_input_and_name(exe):
    with tempfile.TemporaryDirectory() as folder:
        one, two = os.path.join(folder, 'one.lime'), os.path.join(folder, 'two')
        assert call(exe, 'convert', '--bits=32', WEAK, one).returncode == 0
        assert call(exe, 'convert', '--format=nersc', one, two).returncode == 0
        found = info(exe, two)
        assert found['bits'] == 32 and found['format'] == 'NERSC 4D_SU3_GAUGE_3x3 IEEE32BIG'
        assert found['digest'] == info(exe, one)['digest']


@tap.test
def damaged_files_end_with_65_and_a_reason(exe):
    with tempfile.TemporaryDirectory() as folder:
        good, bad = os.path.join(folder, 'good.lime'), os.path.join(folder, 'bad.lime')
        assert call(exe, 'convert', WEAK, good).returncode == 0
        raw = open(good, 'rb').read()
        flipped = bytearray(raw)
        flipped[len(raw) // 2] ^= 1
        for content, status, word in ((raw[:len(raw) // 2], 'TRUNCATED', 'ends'), (flipped, 'BAD_CHECKSUM', 'checksum'),
                                      (b'not a gauge file' * 9, 'BAD_FORMAT', 'not a gauge file'),
                                      (b'', 'BAD_FORMAT', 'not a gauge file')):
            open(bad, 'wb').write(content)
            for command in (['info', bad], ['convert', bad, os.path.join(folder, 'out.lime')]):
                done = call(exe, *command, '--json')
                assert done.returncode == DATA_ERROR, (status, done)
                assert bad in done.stderr and word in done.stderr, done.stderr
                assert json.loads(done.stdout)['status'] == status
        assert sorted(os.listdir(folder)) == ['bad.lime', 'good.lime']


@tap.test
def help_message_and_pages_have_the_formats_of_the_table(exe):
    with tempfile.TemporaryDirectory() as folder:
        bad = os.path.join(folder, 'bad')
        open(bad, 'wb').write(b'x' * 64)
        said = call(exe, 'info', bad).stderr
    formats = re.search('not a gauge file: its first bytes are those of none of (.*)', said)[1].strip().split(', ')
    assert formats[0] == 'ILDG' and formats[-1] == 'DDalphaAMG', formats
    helped = ' '.join(call(exe, 'info', '--help').stdout.split())
    assert 'found by content: %s; builtin' % ', '.join(formats) in helped, helped
    for page, heading in (('docs/physics.md', '## Gauge file formats'), ('docs/man/quark-gauge.1', 'The format is found by content:')):
        with open(os.path.join(ROOT, page), encoding='utf-8') as f:
            text = f.read().split(heading)[1]
        assert not [name for name in formats if name not in text], (page, formats)


def change(path, byte, bit):
    """Flips a bit of the links of an ILDG file."""
    raw = bytearray(open(path, 'rb').read())
    raw[raw.index(b'ildg-binary-data') + 128 + byte] ^= bit
    open(path, 'wb').write(raw)


@tap.test
def a_checksum_is_ignored_on_demand_and_the_rest_is_not(exe):
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, 'old.lime'), os.path.join(folder, 'new.lime')
        assert call(exe, 'convert', WEAK, path).returncode == 0
        assert info(exe, '--ignore-checksum', path)['checksum'] == 'ok'
        change(path, 7, 1)  # the last bit of a number
        assert call(exe, 'info', path).returncode == DATA_ERROR
        assert info(exe, '--ignore-checksum', path)['checksum'] == 'ignored'
        assert 'checksum     ignored: the links give another one' in call(exe, 'info', '--ignore-checksum', path).stdout
        assert call(exe, 'convert', path, out).returncode == DATA_ERROR and not os.path.exists(out)
        done = call(exe, 'convert', '--ignore-checksum', path, out)
        assert done.returncode == 0 and 'verified without the checksum of the file' in done.stdout, done
        assert info(exe, out)['checksum'] == 'ok'
        raw = bytearray(open(path, 'rb').read())
        raw[raw.index(b'<suma>') + 6] = ord('g')
        with open(out, 'wb') as f:
            f.write(raw)
        done = call(exe, 'info', out)
        assert done.returncode == DATA_ERROR and 'is not 1 to 8 hex digits' in done.stderr, done
        assert info(exe, '--ignore-checksum', out)['checksum'] == 'ignored'
        done = call(exe, 'info', '--ignore-checksum', out)
        assert 'checksum     ignored: <suma> = "g' in done.stdout, done
        change(path, 1, 0x40)
        done = call(exe, 'info', '--json', '--ignore-checksum', path)
        assert done.returncode == DATA_ERROR and json.loads(done.stdout)['status'] == 'NOT_UNITARY', done


@tap.test
def checksums_of_tmlqcd_are_read(exe):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'cfg.lime')
        assert call(exe, 'convert', WEAK, path).returncode == 0
        raw = open(path, 'rb').read()
        at = raw.index(b'scidac-checksum') - 16  # of the record, which is the last one
        text = raw[at + 144:].rstrip(b'\0').replace(b'<suma>', b'<suma>0x').replace(b'<sumb>', b'<sumb>0x')
        assert text.count(b'>0x') == 2, text
        head = raw[at:at + 8] + struct.pack('>Q', len(text)) + raw[at + 16:at + 144]
        open(path, 'wb').write(raw[:at] + head + text + bytes(-len(text) % 8))
        assert info(exe, path)['checksum'] == 'ok'


@tap.test
def missing_files_end_with_65_and_unwritable_ones_with_64(exe):
    done = call(exe, 'info', '/nonexistent/file')
    assert done.returncode == DATA_ERROR and 'No such file' in done.stderr and done.stdout == ''
    done = call(exe, 'convert', WEAK, '/nonexistent/out.lime')
    assert done.returncode == USAGE and '/nonexistent' in done.stderr


@tap.test
def wrong_usage_ends_with_64(exe):
    for args in ([], ['info'], ['frob', 'x'], ['info', 'a', 'b'], ['convert', 'a'], ['convert', 'a', 'b'],
                 ['convert', 'a', 'b.lime', 'c'], ['info', '--bits=32', 'a'], ['convert', '--bits=16', 'a', 'b.lime'],
                 ['convert', '--format=milc', 'a', 'b'], ['info', '--dims=4x4x4', 'a'], ['info', '--dims=4x4x4x5', 'a'],
                 ['info', '--frob', 'a'], ['info', 'builtin:hot:4x4x4x4']):
        done = call(exe, *args)
        assert done.returncode == USAGE and done.stderr and not done.stdout, (args, done)


@tap.test
def help_and_version_end_with_0(exe):
    done = call(exe, '--help')
    assert done.returncode == 0 and 'convert IN OUT' in done.stdout
    assert call(exe, '--version').stdout.startswith('quark-gauge ')


@tap.test
def smeared_links_are_those_of_the_oracle(exe):
    with tempfile.TemporaryDirectory() as folder:
        rough, out = os.path.join(folder, 'rough.lime'), os.path.join(folder, 'out.nersc')
        assert call(exe, 'generate', '--dims=4x4x4x6', '--beta=6', '--sweeps=3', '--quiet', '--out=' + folder + '/%d.lime',
                    '--start=hot').returncode == 0
        os.rename(os.path.join(folder, '3.lime'), rough)
        links, _ = ref.load_lime(rough)
        for spec in ('ape:0.6,5', 'ape:0.5,2,4d', 'stout:0.1,4', 'hyp:0.75,0.6,0.3,2', 'ape:0.6,0'):
            done = call(exe, 'smear', '--json', '--links=' + spec, rough, out)
            assert done.returncode == 0, done.stderr
            told, (found, _) = json.loads(done.stdout), ref.load_nersc(out)
            want = smear_ref.smear_links(links, spec)
            assert np.abs(found - want).max() < 1e-10, (spec, np.abs(found - want).max())
            assert abs(told['plaquette_before'] - ref.plaquette(links)) < 1e-12
            assert abs(told['plaquette'] - ref.plaquette(want)) < 1e-10
            assert told['links'] == spec and told['format'] == 'nersc' and told['bits'] == 64
        done = call(exe, 'smear', '--bits=32', '--links=stout:0.1,4', rough, os.path.join(folder, 'b.lime'))
        assert done.returncode == 0 and 'before' in done.stdout and info(exe, os.path.join(folder, 'b.lime'))['bits'] == 32


@tap.test
def smearing_refuses_what_it_cannot_do(exe):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'out.lime')
        for args in (['--links=ape:2,3', WEAK, out], ['--links=gauss:1,3', WEAK, out], ['--links=', WEAK, out], [WEAK, out],
                     ['--links=ape:0.5,1', WEAK], ['--links=ape:0.5,1', WEAK, out, 'x'], ['--links=ape:0.5', WEAK, out],
                     ['--links=ape:0.5,1', '--backend=x', WEAK, out], ['--links=ape:0.5,1', WEAK, folder + '/out']):
            done = call(exe, 'smear', *args)
            assert done.returncode == USAGE and done.stderr and not done.stdout, (args, done)
        for args, code in (([out, out], DATA_ERROR), ([WEAK, '/nonexistent/x.lime'], USAGE)):
            assert call(exe, 'smear', '--links=ape:0.5,1', *args).returncode == code
        assert not os.listdir(folder)


@tap.test
def an_output_that_is_lost_is_told(exe):
    with open('/dev/full', 'w') as full:
        done = subprocess.run([exe, 'info', WEAK], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == DATA_ERROR and 'stdout' in done.stderr, done


@tap.test
def a_terminal_sees_progress(exe):
    master, slave = pty.openpty()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'a.lime')
        assert call(exe, 'convert', WEAK, path).returncode == 0
        done = subprocess.run([exe, 'info', path], stdout=subprocess.PIPE, stderr=slave, timeout=120)
    os.close(slave)
    shown = os.read(master, 65536).decode()
    os.close(master)
    assert done.returncode == 0 and '100%' in shown and '[####' in shown, shown


@tap.test
def reference_data_give_the_reference_numbers(exe):
    with open(data('reference.json')) as f:
        reference = json.load(f)
    for name, want in reference.items():
        hint = ['--dims=4x4x4x4'] if name.startswith('lqcdjl_') else []
        done = call(exe, 'info', '--json', data(name), *hint)
        if name == 'milc_lat.sample.5p7':
            assert done.returncode == DATA_ERROR and 'checksum' in done.stderr and 'SU(3)' in done.stderr
            continue
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found['dims'] == want['dims_xyzt'] and abs(found['plaquette'] - want['plaquette']) < 1e-12, name
        assert all(abs(found['planes'][k] - v) < 1e-12 for k, v in want['planes'].items()), name


@tap.test
def extents_are_asked_for_where_a_file_has_none(exe):
    path = data('lqcdjl_confs_HMC_L04040404_beta5.7_Wilson_kappa0.141139.ildg')
    done = call(exe, 'info', path)
    assert done.returncode == DATA_ERROR and '--dims' in done.stderr
    assert call(exe, 'info', '--dims=4x4x4x6', path).returncode == DATA_ERROR
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'out.lime')
        assert call(exe, 'convert', '--dims=4x4x4x4', path, out).returncode == 0
        assert info(exe, out)['dims'] == [4, 4, 4, 4]


tap.run(sys.argv[1])
