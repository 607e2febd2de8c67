"""quarkctl and propagators in SciDAC files: test_scidac_cli.py QUARKD QUARKCTL QUARK_GAUGE QUARK_ENGINE EXAMPLE"""
import os
import struct
import sys
import tempfile

from cli_case import AGAIN, COLUMN_BYTES, DATA, DIMS, KAPPA, USAGE, Case, np, random_sources, read_field, ref, tap, write_sources
import scidac

SITE, POINT = (1, 2, 3, 5), 'point:1,2,3,5'
FOLDER = None


def path(name):
    return os.path.join(FOLDER.name, name)


def propagator(d, out, *options, source=POINT):
    done = d.ctl('propagator', '--source=' + source, '--tol=1e-11', '--out', path(out), *options)
    assert done.code == 0, done
    return path(out)


def refused(done, code, *words):
    assert done.code == code, done
    for word in words:
        assert word in done.err, (word, done.err)


def alone(*names):
    """The folder holds these files and nothing else, but for what other tests have left."""
    left = [n for n in os.listdir(FOLDER.name) if '.part' in n or '.columns' in n]
    assert left == [], left
    for name in names:
        assert not os.path.exists(path(name)), name


@tap.test
def the_forms_of_chroma_and_milc_hold_what_hdf5_holds_to_the_last_bit(case):
    with case.daemon() as d:
        for dtype, kind in ('f64', np.complex128), ('f32', np.complex64):
            h5 = read_field(propagator(d, 'p.%s.h5' % dtype, '--dtype=' + dtype))
            chroma = scidac.columns(propagator(d, 'p.%s.lime' % dtype, '--dtype=' + dtype))
            milc = scidac.columns(propagator(d, 'u.%s.lime' % dtype, '--dtype=' + dtype, '--format=usqcd'))
            assert chroma.dtype == milc.dtype == kind
            assert np.array_equal(h5.view(kind), chroma) and np.array_equal(chroma, milc)
    source = np.zeros(chroma.shape[1:], complex)
    source[SITE[3], SITE[2], SITE[1], SITE[0], 2, 1] = 1
    x = scidac.columns(path('p.f64.lime'))[3 * 2 + 1]
    assert case.residual(x, source) < 2e-11
    alone()


@tap.test
def texts_say_what_others_look_for(case):
    f = scidac.File(path('p.f64.lime'))
    record = f.fields[0].record
    assert f.dims == DIMS and f.file.tag == 'propagator' and record.tag == 'Propagator'
    assert record.findtext('ForwardProp/version') == '9' and record.findtext('ForwardProp/FermionAction/FermAct') == 'CLOVER'
    assert record.findtext('ForwardProp/FermionAction/FermionBC/boundary') == '1 1 1 -1'
    assert float(record.findtext('ForwardProp/FermionAction/Mass')) == 1 / (2 * KAPPA) - 4
    assert record.findtext('PropSource/Source/SourceType') == 'POINT_SOURCE'
    assert record.findtext('PropSource/Source/t_srce') == '1 2 3 5' and record.findtext('PropSource/j_decay') == '3'
    assert record.find('Config_info') is not None and record.findtext('quarkd/source') == POINT
    private = f.fields[0].private
    assert [private.findtext(tag) for tag in ('datatype', 'colors', 'spins', 'typesize', 'datacount')] == ['Lattice', '3', '4', '2304', '1']
    milc = scidac.File(path('u.f32.lime'))
    assert [p.private.findtext('typesize') for p in milc.fields] == ['8'] + 12 * ['96']


@tap.test
def the_source_in_the_form_of_milc_is_that_of_the_columns(case):
    with case.daemon() as d:
        wall = propagator(d, 'wall.lime', '--format=usqcd', source='wall:2,p=1:0:-1')
    f = scidac.File(wall)
    source, cols = f.fields[0].scalar(), scidac.columns(wall)
    assert np.abs(source).sum() > 0
    for k in 0, 7, 11:
        b = np.zeros(cols.shape[1:], complex)
        b[..., k // 3, k % 3] = source
        assert case.residual(cols[k], b) < 2e-11
    point = scidac.File(path('u.f64.lime')).fields[0].scalar()
    assert np.argwhere(point).tolist() == [list(reversed(SITE))] and point[tuple(reversed(SITE))] == 1


@tap.test
def what_others_have_written_is_solved_for(case):
    b = random_sources(12)
    pairs, twelve = 'USQCD_DiracFermion_Source_Sink_Pairs', 'USQCD_DiracFermion_ScalarSource_TwelveSink'
    zero = np.zeros(b.shape[1:5] + (1,), complex)
    order = [5, 0, 11, 3, 2, 1, 4, 10, 9, 8, 7, 6]  # the columns are found by what is said of them
    text = '<MakeSource><PropSource><Source><t_srce>0 0 0 3</t_srce></Source></PropSource></MakeSource>'
    files = {
        'chroma.lime': [scidac.head(DIMS), scidac.field(scidac.propagator_of(b), text)],
        'count.lime': [scidac.head(DIMS), scidac.field(scidac.propagator_of(b), text, datacount=12)],
        'milc.lime': [scidac.head(DIMS, scidac.prop_file(twelve)), scidac.field(zero, scidac.SOURCE_INFO)] +
                     [scidac.field(b[k], scidac.prop_info(k)) for k in order],
        'pairs.lime': [scidac.head(DIMS, scidac.prop_file(pairs))] +
                      [scidac.field(v, t) for k in range(12) for v, t in ((b[k] * 7, scidac.SOURCE_INFO), (b[k], scidac.prop_info(k)))],
        'fermion.lime': [scidac.head(DIMS), scidac.field(b[0], '<anything/>')],
    }
    with case.daemon() as d:
        for name, messages in files.items():
            scidac.write_messages(path(name), messages)
            done = d.ctl('solve', '--in', path(name), '--tol=1e-11', '--out', path('x.h5'))
            assert done.code == 0, (name, done)
            x = read_field(path('x.h5')).view(complex)
            assert len(x) == (1 if name == 'fermion.lime' else 12)
            for k in range(len(x)):
                assert case.residual(x[k], b[k]) < 2e-11, (name, k)
        scidac.write_messages(path('f32.lime'), [scidac.head(DIMS), scidac.field(scidac.propagator_of(b.astype(np.complex64)), text)])
        done = d.ctl('solve', '--in', path('f32.lime'), '--tol=1e-6', '--out', path('x.lime'))
        assert done.code == 0 and scidac.columns(path('x.lime')).dtype == np.complex64, done


@tap.test
def a_propagator_file_has_the_same_pion_in_every_format(case):
    files = [path(n) for n in ('p.f64.h5', 'p.f64.lime', 'u.f64.lime')]
    pions = [case.ctl('correlator', f, '--json').json['channels']['pion']['C'] for f in files]
    assert pions[0] == pions[1] == pions[2]
    foreign = path('foreign.lime')
    text = '<Propagator><PropSource><Source><t_srce>1 2 3 5</t_srce></Source></PropSource></Propagator>'
    scidac.write_messages(foreign, [scidac.head(DIMS), scidac.field(scidac.propagator_of(scidac.columns(files[1])), text)])
    assert case.ctl('correlator', foreign, '--json').json['channels']['pion']['C'] == pions[0]


@tap.test
def detached_work_is_fetched_in_the_format_of_the_command(case):
    with case.daemon() as d:
        done = d.ctl('propagator', '--source=' + POINT, '--tol=1e-11', '--out', path('later'), '--format=usqcd', '--detach')
        assert done.code == 0, done
        done = d.ctl('fetch', path('later.ticket'))
        assert done.code == 0, done
        assert np.array_equal(scidac.columns(path('later')), scidac.columns(path('u.f64.lime')))
        refused(d.ctl('propagator', '--source=z2:3', '--count=2', '--out', path('n.lime'), '--detach'), USAGE, '12 columns', '--format=hdf5')
        alone('n.lime', 'n.lime.ticket')


@tap.test
def a_client_that_maps_nothing_writes_the_same_file(case):
    with case.daemon('--listen=tcp://127.0.0.1:*', '--local=no') as d:
        for name, options in ('tcp.lime', []), ('tcpu.lime', ['--format=usqcd']):
            propagator(d, name, *options)
            assert np.array_equal(scidac.columns(path(name)), scidac.columns(path('p.f64.lime'))), name
    alone()


@tap.test
def a_daemon_without_room_for_twelve_solutions_is_told(case):
    with case.daemon('--max-memory=%d' % (8 * COLUMN_BYTES)) as d:
        done = d.ctl('propagator', '--source=' + POINT, '--tol=1e-11', '--out', path('full.lime'), '--timeout=1')
        refused(done, AGAIN, 'room for all 12', '--format=hdf5')
        alone('full.lime')
        propagator(d, 'full.h5')


@tap.test
def what_a_format_cannot_hold_is_refused_before_anything_is_solved(case):
    with case.daemon() as d:
        out = path('no.lime')

        def tried(*args):
            done = d.ctl(*args)
            assert d.ctl('status', '--json').json['counters']['accepted'] == 0
            alone('no.lime')
            return done

        refused(tried('propagator', '--source=z2:3', '--count=12', '--out', out, '--format=usqcd'), USAGE, 'usqcd', 'z2:3')
        refused(tried('propagator', '--source=' + POINT, '--basis=ukqcd', '--out', out), USAGE, 'degrand-rossi', 'ukqcd')
        refused(tried('propagator', '--source=' + POINT, '--smear=gauss:0.2,3', '--format=usqcd', '--out', out), USAGE, 'smearing')
        refused(tried('sequential', '--source=' + POINT, '--gamma=g5', '--sink-time=2', '--format=usqcd', '--out', out), USAGE, 'sequential')
        refused(tried('propagator', '--source=' + POINT, '--format=nersc', '--out', out), USAGE, 'hdf5, scidac or usqcd')
        refused(tried('propagator', '--source=' + POINT, '--format=scidac', '--sink=file:/tmp/x'), USAGE, '--format')
        refused(tried('correlator', '--source=' + POINT, '--format=scidac', '--out', out), USAGE, '--format')


@tap.test
def a_column_without_a_solution_leaves_no_file(case):
    b = random_sources(12)
    b[3] = np.nan
    write_sources(path('nan.h5'), b)
    with case.daemon() as d:
        refused(d.ctl('solve', '--in', path('nan.h5'), '--out', path('nan.lime')), DATA, 'column 3', 'NAN_INPUT')
        alone('nan.lime')


@tap.test
def damaged_files_are_refused_and_named(case):
    good = scidac.read_messages(path('p.f64.lime'))
    raw = open(path('p.f64.lime'), 'rb').read()
    at = raw.index(b'scidac-binary-data') + 128

    def changed(*pairs):
        data = raw
        for old, new in pairs:
            assert old in data and len(old) == len(new), old
            data = data.replace(old, new)
        return data

    def length(value):
        return raw[:at - 136] + struct.pack('>Q', value) + raw[at - 128:]

    cases = {
        'a flipped bit': (raw[:at + 999] + bytes([raw[at + 999] ^ 4]) + raw[at + 1000:], 'checksum'),
        'short': (raw[:at + 5000], 'the file ends'),
        'without its checksum': (raw[:raw.index(b'scidac-checksum') - 16], 'no checksum'),
        'another size of a site': (changed((b'<typesize>2304', b'<typesize>2305')), '2305'),
        'a negative size': (changed((b'<typesize>2304', b'<typesize>-304')), 'not a number'),
        'a staggered propagator': (changed((b'<typesize>2304', b'<typesize>0144')), '144'),
        'a NUL in a number': (changed((b'<typesize>2304', b'<typesize>23\0004')), 'typesize'),
        'other precision': (changed((b'<precision>D', b'<precision>F')), '2304'),
        'extents of another lattice': (changed((b'<dims>4 4 4 8', b'<dims>4 4 8 8')), 'bytes'),
        'no extents': (changed((b'<dims>4 4 4 8', b'<dims>0 4 4 8')), 'extent of x = 0'),
        'huge extents': (changed((b'<dims>4 4 4 8 <', b'<dims>99999999<')), 'four'),
        'a length of 2^63': (length(1 << 63), 'says it holds 9223372036854775808'),
        'a length of 2^64 - 1': (length((1 << 64) - 1), 'says it holds'),
        'a status that is none': (changed((b'<column3>OK ', b'<column3>KO ')), 'column3'),
        'other extents in our own words': (raw.replace(b'<quarkd>\n<tag_version>1</tag_version>\n<dims>4 4 4 8', b'<quarkd>\n<tag_version>1</tag_version>\n<dims>4 4 8 4'), 'dims'),
        'a second field': (None, 'one is read'),
        'a gauge configuration': (raw.replace(b'scidac-binary-data', b'ildg-binary-data\0\0'), 'gauge configuration'),
    }
    with case.daemon() as d:
        for name, (data, word) in cases.items():
            bad = path('bad.lime')
            if data is None:
                scidac.write_messages(bad, good + good[1:])
            else:
                with open(bad, 'wb') as f:
                    f.write(data)
            done = d.ctl('solve', '--in', bad, '--out', path('x.lime.no'))
            assert done.code == DATA and 'bad.lime' in done.err and word in done.err, (name, word, done)
        refused(d.ctl('solve', '--in', path('p.f64.lime'), '--dataset=field', '--out', path('no.h5')), DATA, 'SciDAC', 'dataset')
        other = path('other.lime')
        scidac.write_messages(other, [scidac.head([4, 4, 4, 4]), scidac.field(np.ones((4, 4, 4, 4, 4, 3), complex), '<a/>')])
        refused(d.ctl('solve', '--in', other, '--out', path('no.h5')), DATA, '4 x 4 x 4 x 4')
        refused(d.ctl('solve', '--in', path('p.f64.lime'), '--basis=ukqcd', '--out', path('no.h5')), DATA, 'degrand-rossi')
    alone('no.h5', 'x.lime.no')


if __name__ == '__main__':
    FOLDER = tempfile.TemporaryDirectory()
    tap.run(Case(*sys.argv[1:6]))
