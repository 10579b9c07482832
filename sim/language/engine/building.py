"""One file for Cython of the kernel's files: python -m sim.language.engine.building compiles it beside them.

The plain files are the source. Here their functions get Cython's decorators and types (a local name has the type of what it is
given), layout.py's numbers become a C enum, and its table of fields a class; one extension module of Python's stable ABI is made of it,
which all versions from 3.11 on load.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

from sim.language.engine import layout

HERE = Path(__file__).parent
FILES = ("events", "cores", "mail", "rings", "texts", "flows", "codes", "machine")
NAME = "_kernel"
HEAD = """# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=False, cpow=False
# cython: infer_types=True
import cython
from libc cimport math
cdef double nan = float("nan"), inf = float("inf")
"""
DECORATORS = "@cython.cfunc\n@cython.inline\n@cython.nogil\n@cython.exceptval(check=False)"
RUN = '''
def run(State S) -> int:
    """Go on until no event is left, or something is short; other threads run meanwhile."""
    cdef long long status
    with nogil:
        status = simulate(S)
    return status
'''


def source() -> str:
    """The text that Cython compiles, which names itself."""
    return f'{_text()}\nSOURCE = "{digest()}"\n'


def digest() -> str:
    """By which a kernel that was compiled from these files is known."""
    return hashlib.sha256(_text().encode()).hexdigest()[:16]


def _text() -> str:
    numbers = {name: value for name, value in vars(layout).items() if name.isupper() and type(value) is int}
    reals = {name: value for name, value in vars(layout).items() if type(value) is float}
    lines = [
        HEAD,
        *(f"cdef double {name} = {value!r}" for name, value in reals.items()),
        "cdef enum:",
        *(f"    {name} = {value}" for name, value in numbers.items() if abs(value) < 2**31),
        "",
    ]
    lines += ["cdef class State:"]
    lines += [f"    cdef public double[::1] {name}" for name in layout.DOUBLES]
    lines += [f"    cdef public long long[::1] {name}" for name in layout.INTEGERS]
    lines += [
        f"    cdef public {'double' if kind is float else 'long long'} {name}" for name, kind in layout.NUMBERS.items()
    ]
    return "\n".join([*lines, "", *(_translated((HERE / f"{name}.py").read_text()) for name in FILES), RUN])


def _translated(text: str) -> str:
    """One of the kernel's files without its imports, and with Cython's types."""
    text = re.sub(r'\A""".*?"""\n', "", text, flags=re.DOTALL)
    text = re.sub(r"^from [\w.]+ import (\(.*?\)|[^\n]*)\n", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^import [^\n]*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\bint\(", "<long long>(", text)
    text = re.sub(r"\b(op\.|math\.(?=inf|nan))", "", text)
    text = re.sub(r"^def ", f"{DECORATORS}\ndef ", text, flags=re.MULTILINE)
    for ours, theirs in (("int", "longlong"), ("float", "double"), ("bool", "bint"), ("None", "void")):
        text = re.sub(rf"(: |-> ){ours}\b", rf"\1cython.{theirs}", text)
    return text


def build() -> None:
    """Compile the kernel of a source tree in its place.

    Raises:
        subprocess.CalledProcessError: there is no compiler, or no Cython.
    """
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=HERE.parents[2], check=True)


if __name__ == "__main__":
    build()
