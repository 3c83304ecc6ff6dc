"""Runs two commands at the same time, the first with what the second leaves of the processors.

    python -m tests.side_by_side 'make unit' 'make integration'

The output of the second command is shown while it runs, and that of the first when both have ended, so that
each can be read. The exit code is that of a command that failed, and 0 where none did.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from signal import SIGINT
from subprocess import STDOUT, Popen

#: How much the first command gives way (see nice(1)): where the second wants all processors, the first still
#: gets a tenth. With less it would stand still for seconds, and its tests would miss their deadlines.
NICE = 10


def side_by_side(first: str, second: str) -> int:
    """Runs the commands and gives the exit code; 130 where Ctrl-C has ended them."""
    with tempfile.TemporaryFile() as kept:
        one = Popen(["nice", "-n", str(NICE), *shlex.split(first)], stdout=kept, stderr=STDOUT)
        other = Popen(shlex.split(second))
        try:
            codes = [other.wait(), one.wait()]
        except KeyboardInterrupt:  # The terminal has sent it to both as well.
            codes = [128 + SIGINT]
        finally:
            for process in (one, other):
                process.terminate()
                process.wait()
            print(f"\n$ {first}", flush=True)
            kept.seek(0)
            shutil.copyfileobj(kept, sys.stdout.buffer)
            sys.stdout.flush()
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(side_by_side(*sys.argv[1:]))
