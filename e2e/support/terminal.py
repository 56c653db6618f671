"""Runs a program on a terminal of its own: terminal.py COLUMNSxROWS PROGRAM [ARGUMENT...]

What comes on standard input is typed, what the terminal shows goes to standard output as it is. The program's pid is written to
descriptor 3. It ends with the program's exit code, or 128 and the signal that ended it. Standard library only.
"""

import fcntl
import os
import pty
import select
import struct
import sys
import termios

COPY_BYTES = 65536


def main(size: str, program: list[str]) -> int:
    columns, rows = (int(part) for part in size.split("x"))
    pid, terminal = pty.fork()
    if pid == 0:
        os.close(3)
        os.execvp(program[0], program)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    os.write(3, f"{pid}\n".encode())
    os.close(3)
    sources = [0, terminal]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if 0 in ready:
            typed = os.read(0, COPY_BYTES)
            if typed:
                os.write(terminal, typed)
            else:
                sources.remove(0)
        if terminal in ready:
            try:
                shown = os.read(terminal, COPY_BYTES)
            except OSError:  # the last process that had the terminal is gone
                break
            if not shown:
                break
            os.write(1, shown)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    code = main(sys.argv[1], sys.argv[2:])
    sys.exit(code if code >= 0 else 128 - code)
