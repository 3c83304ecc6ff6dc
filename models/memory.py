"""Memory of this process, and settings of glibc's allocator where there is one."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import resource
from pathlib import Path

#: The name of the option in glibc's malloc.h.
_M_ARENA_MAX = -8
#: Arenas that the threads share; each keeps what was freed in it for itself.
ARENAS = 2


def share_arenas() -> None:
    """Lets the threads share ARENAS arenas instead of eight for each processor; to be called before there are
    threads. The variable MALLOC_ARENA_MAX takes precedence.
    """
    if _is_glibc() and "MALLOC_ARENA_MAX" not in os.environ:
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS)


def give_back() -> None:
    """Returns the free pages between what is in use to the system."""
    if _is_glibc():
        ctypes.CDLL(None).malloc_trim(0)


def peak_bytes() -> int:
    """Peak resident memory of this process in bytes. Without /proc it is that of getrusage, which includes
    the memory of a larger parent that this process was forked from.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        status = ""
    found = re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)
    return 1024 * (int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _is_glibc() -> bool:
    return platform.libc_ver()[0] == "glibc"
