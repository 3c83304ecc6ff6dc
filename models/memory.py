"""Settings of the allocator of the C library, where that is glibc; elsewhere nothing is done."""

from __future__ import annotations

import ctypes
import os
import platform

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


def _is_glibc() -> bool:
    return platform.libc_ver()[0] == "glibc"
