"""Keeps the process that executes a hand-in inside some folders and some memory, as far as the system can.

On Linux, Landlock (kernel 5.13 and later) refuses other files; newer kernels refuse network connections by TCP and
signals to other processes as well. Where there is no Landlock, only the limits of `resource` hold; on Windows nothing
does. This file is read before anything is imported, so it needs the standard library only.

Does: limit the process that calls it, and those that it starts. Does not: undo that.
"""

import ctypes
import os
import sys

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every processor
READ_FILE, READ = 0b0101, 0b1101                         # execute and read a file; a folder as well
WRITE_FILE, TRUNCATE = 1 << 1, 1 << 14
MAKE_AND_REMOVE, MOVE = 0x1FF0, 1 << 13                  # in folders
NET, SCOPE = 0b11, 0b11                                  # TCP in and out; abstract sockets and signals
NO_NEW_PRIVILEGES = 38


def limit_resources(memory: int, file: int) -> None:
    """At most `memory` bytes of data and `file` bytes in one file; no core dumps. Nothing where that can't be set."""
    try:
        import resource
    except ImportError:
        return
    for name, most in (("RLIMIT_DATA", memory), ("RLIMIT_FSIZE", file), ("RLIMIT_CORE", 0)):
        try:
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, most))
        except (AttributeError, OSError, ValueError):
            pass


def limit_to_folders(readable: list[str], writable: list[str]) -> int:
    """Refuse every file outside these folders from now on. Returns Landlock's version, 0 if the system can't do it; from
    version 4 on TCP connections are refused as well, from 6 on signals to other processes.

    It holds for this thread and all that it starts, so call it before there is a second one.
    """
    if not sys.platform.startswith("linux"):
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(CREATE_RULESET, None, 0, 1)
    if version < 1:
        return 0
    write = WRITE_FILE | MAKE_AND_REMOVE | (MOVE if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    handled = READ | write
    attributes = (ctypes.c_uint64 * 3)(handled, NET if version >= 4 else 0, SCOPE if version >= 6 else 0)
    rules = libc.syscall(CREATE_RULESET, attributes, 8 * (3 if version >= 6 else 2 if version >= 4 else 1), 0)
    if rules < 0:
        return 0
    try:
        for paths, rights in ((readable, READ), (writable, READ | write)):
            for path in paths:
                _allow(libc, rules, path, rights)
        held = libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and libc.syscall(RESTRICT_SELF, rules, 0) == 0
        return version if held else 0
    finally:
        os.close(rules)


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("rights", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def _allow(libc, rules: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:                                     # not there: nothing to allow
        return
    try:
        if not os.path.isdir(path):
            rights &= READ_FILE | WRITE_FILE | TRUNCATE
        libc.syscall(ADD_RULE, rules, 1, ctypes.byref(_Rule(rights, opened)), 0)
    finally:
        os.close(opened)
