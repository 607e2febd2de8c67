"""SciDAC (QIO) files of propagators and fermions, from the description of the format: LIME records, texts of XML, numbers big endian with
x fastest, a checksum of CRC-32 words. Slow and obvious; shares nothing with the code under test. Unlike it, texts are parsed as XML.

File       a list of messages, each a list of (type, bytes)
propagator numpy array [t][z][y][x][spin][spin0][colour][colour0]
fermion    numpy array [t][z][y][x][spin][colour]
"""
import struct
import xml.etree.ElementTree as ET
import zlib

import numpy as np

MAGIC = 0x456789ab
XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def read_messages(path):
    with open(path, 'rb') as f:
        raw = f.read()
    messages, at = [], 0
    while at < len(raw):
        magic, version, flags, length = struct.unpack_from('>IHHQ', raw, at)
        assert magic == MAGIC and version == 1, 'no LIME record at byte %d' % at
        kind = raw[at + 16:at + 144].split(b'\0')[0].decode()
        if flags & 0x8000:
            messages.append([])
        data = raw[at + 144:at + 144 + length]
        assert len(data) == length, '%s is cut short' % kind
        messages[-1].append((kind, data))
        at += 144 + (length + 7) // 8 * 8
    return messages


def write_messages(path, messages):
    with open(path, 'wb') as f:
        for message in messages:
            for i, (kind, data) in enumerate(message):
                flags = (0x8000 if i == 0 else 0) | (0x4000 if i == len(message) - 1 else 0)
                f.write(struct.pack('>IHHQ128s', MAGIC, 1, flags, len(data), kind.encode()))
                f.write(data + bytes(-len(data) % 8))


def rotate(word, by):
    return (word << by | word >> (32 - by)) & 0xffffffff if by else word


def checksum(data, site_bytes):
    a = b = 0
    for i in range(len(data) // site_bytes):
        crc = zlib.crc32(data[i * site_bytes:(i + 1) * site_bytes])
        a ^= rotate(crc, i % 29)
        b ^= rotate(crc, i % 31)
    return a, b


def root_of(data):
    return ET.fromstring(data.rstrip(b'\0').decode().strip())


class Field:
    """A field of a file: what its texts say, and its numbers as they are [t][z][y][x][...]."""

    def __init__(self, message, dims):
        parts = dict(message)
        self.private, self.record = root_of(parts['scidac-private-record-xml']), root_of(parts['scidac-record-xml'])
        self.precision = self.private.findtext('precision')
        self.site_bytes = int(self.private.findtext('typesize')) * int(self.private.findtext('datacount'))
        data, stated = parts['scidac-binary-data'], root_of(parts['scidac-checksum'])
        sums = tuple(int(stated.findtext(tag), 16) for tag in ('suma', 'sumb'))
        assert checksum(data, self.site_bytes) == sums, 'the checksum is wrong'
        self.dtype = {'F': '>c8', 'D': '>c16'}[self.precision]
        self.numbers = np.frombuffer(data, self.dtype).reshape(tuple(reversed(dims)) + (-1,))

    def propagator(self):
        return self.numbers.reshape(self.numbers.shape[:4] + (4, 4, 3, 3)).astype(self.dtype[1:])

    def fermion(self):
        return self.numbers.reshape(self.numbers.shape[:4] + (4, 3)).astype(self.dtype[1:])

    def scalar(self):
        return self.numbers[..., 0].astype(self.dtype[1:])


class File:
    def __init__(self, path):
        messages = read_messages(path)
        head = dict(messages[0])
        private = root_of(head['scidac-private-file-xml'])
        assert private.findtext('volfmt') == '0' and private.findtext('spacetime') == '4'
        self.dims = [int(n) for n in private.findtext('dims').split()]
        self.file = root_of(head['scidac-file-xml'])
        self.fields = [Field(m, self.dims) for m in messages[1:]]


def columns(path):
    """The columns [column][t][z][y][x][spin][colour] of a propagator in either form; column = 3 spin0 + colour0."""
    f = File(path)
    if f.file.tag != 'usqcdPropFile':
        assert len(f.fields) == 1
        s = f.fields[0].propagator()
        return np.stack([s[..., k // 3, :, k % 3] for k in range(12)])
    assert f.file.findtext('type') == 'USQCD_DiracFermion_ScalarSource_TwelveSink' and len(f.fields) == 13
    assert f.fields[0].record.tag == 'usqcdSourceInfo'
    out = [None] * 12
    for field in f.fields[1:]:
        assert field.record.tag == 'usqcdPropInfo'
        out[3 * int(field.record.findtext('spin')) + int(field.record.findtext('color'))] = field.fermion()
    return np.stack(out)


# ---- writing, as others may ----


def head(dims, text='<propagator><id>0</id></propagator>'):
    lattice = '<scidacFile><version>1.1</version><spacetime>4</spacetime><dims>%d %d %d %d </dims><volfmt>0</volfmt></scidacFile>' % tuple(dims)
    return [('scidac-private-file-xml', (XML + lattice).encode()), ('scidac-file-xml', (XML + text).encode())]


def field(numbers, text, datatype='Lattice', typesize=None, datacount=1, spins=4):
    """A message of numbers [t][z][y][x][...] in complex64 or complex128."""
    precision, dtype = ('F', '>c8') if numbers.dtype == np.complex64 else ('D', '>c16')
    data = numbers.astype(dtype).tobytes()
    site = len(data) // int(np.prod(numbers.shape[:4]))
    private = ('<scidacRecord><version>1.1</version><date>now</date><recordtype>0</recordtype><datatype>%s</datatype>'
               '<precision>%s</precision><colors>3</colors><spins>%d</spins><typesize>%d</typesize><datacount>%d</datacount></scidacRecord>'
               % (datatype, precision, spins, site // datacount if typesize is None else typesize, datacount))
    sums = '<scidacChecksum><version>1.0</version><suma>%x</suma><sumb>%x</sumb></scidacChecksum>' % checksum(data, site)
    return [('scidac-private-record-xml', (XML + private).encode()), ('scidac-record-xml', (XML + text).encode()),
            ('scidac-binary-data', data), ('scidac-checksum', (XML + sums).encode())]


def propagator_of(cols):
    """[column][t][z][y][x][spin][colour] as a site has it."""
    n = cols.shape[1:5]
    return np.ascontiguousarray(cols.reshape((4, 3) + n + (4, 3)).transpose(2, 3, 4, 5, 6, 0, 7, 1))


def prop_info(k):
    return '<usqcdPropInfo><version>1.0</version><spin>%d</spin><color>%d</color><info></info></usqcdPropInfo>' % divmod(k, 3)


SOURCE_INFO = '<usqcdSourceInfo><version>1.0</version><info>a source</info></usqcdSourceInfo>'


def prop_file(kind):
    return '<usqcdPropFile><version>1.0</version><type>%s</type><info></info></usqcdPropFile>' % kind
