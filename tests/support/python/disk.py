"""A disk that a test breaks while a program writes to it: the switches of disk_shim.c."""
import mmap
import os
import re
import struct
import subprocess
import tempfile
import time

WRITE, SYNC, OPEN, NAMES, ROOM, PLACE, READ, FOLDER = 1, 2, 4, 8, 16, 32, 64, 256
ALL = WRITE | SYNC | OPEN | NAMES
KINDS, ERROR, STALL, KILL_AT, CALLS, MET, LEFT, ASKED, LEAST = FIELDS = range(9)


def preloaded(shim, binary):
    """The shim for that program, behind the library of the sanitizer that it is built with, which wants to be the first one to be loaded."""
    needed = subprocess.run(['ldd', binary], capture_output=True, text=True, check=True).stdout
    return ' '.join(re.findall(r'=> (\S*/lib[at]san\.so\S*)', needed) + [shim])


class Disk:
    """What befalls system calls on files of the folder."""

    def __init__(self, shim, folder):
        self.file = tempfile.NamedTemporaryFile(prefix='qk-shim-')
        self.file.write(bytes(8 * len(FIELDS)))
        self.file.flush()
        self.page = mmap.mmap(self.file.fileno(), 8 * len(FIELDS))
        self.env = {'LD_PRELOAD': shim, 'QK_SHIM_FOLDER': os.path.realpath(folder), 'QK_SHIM_PAGE': self.file.name}

    def get(self, field):
        return struct.unpack_from('<q', self.page, 8 * field)[0]

    def set(self, field, value):
        struct.pack_into('<q', self.page, 8 * field, value)

    def fails(self, error, kinds=ALL):
        assert self.get(CALLS) > 0, 'nothing goes through the shim'
        self.set(ERROR, error)
        self.set(KINDS, kinds)

    def stalls(self, ms, kinds=SYNC):
        self.set(ERROR, 0)
        self.set(STALL, ms)
        self.set(KINDS, kinds)

    def stalls_writes(self, bytes):
        """Those of so many at least, until it works."""
        self.set(LEAST, bytes)
        self.stalls(600000, WRITE)

    def has_room(self, bytes):
        """So much is left, it says."""
        self.set(LEFT, bytes)

    def works(self):
        """What stalls goes on."""
        self.set(KINDS, 0)
        self.set(STALL, 0)
        self.set(LEFT, 0)
        self.set(LEAST, 0)

    def when_met(self):
        """Waits until a call has failed, or stalls."""
        while not self.get(MET):
            time.sleep(0.001)

    def when_asked(self):
        """Waits until it has told its room as it is now; quarkd asks for that every second."""
        asked = self.get(ASKED)
        while self.get(ASKED) < asked + 2:  # before it asks again it has the answer
            time.sleep(0.001)

    def kills(self, after):
        """The process ends in place of the call that comes after so many more."""
        self.set(KILL_AT, self.get(CALLS) + after + 1)

    def spares(self):
        self.set(KILL_AT, 0)
