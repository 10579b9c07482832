"""What is special about the wheel: it has one package, `trainsim`, which has all others within it; the rest is in setup.cfg.

The language's kernel is compiled where there is a C compiler; where there is none, installing says so, and the event world answers.

The source tree has the packages side by side, and an editable install leaves them there. In the site-packages of a wheel names such as
`sim` and `real` would hide a user's own modules, or be hidden by them.
"""

from __future__ import annotations

import ast
import re
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info

OUTER = "trainsim"
INNER = ("sim", "real", "calibration", "experiments")
FROM = re.compile(rb"from\s+(?=\w)")


def moved(text: bytes) -> bytes:
    """A module's source whose imports name modules within trainsim; no line is added, removed or joined.

    Raises:
        ValueError: `import sim.x` without `as`, which would give the name `sim` to a module of another name.
    """
    places = []
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and _is_inner(node.module or ""):
            found = FROM.match(text, starts[node.lineno - 1] + node.col_offset)
            if found is None:
                raise ValueError(f"line {node.lineno}: no `from` with a module's name behind it")
            places.append((found.end(), f"{OUTER}.".encode()))
        elif isinstance(node, ast.Import):
            for name in node.names:
                if not _is_inner(name.name):
                    continue
                if name.asname:
                    places.append((starts[name.lineno - 1] + name.col_offset, f"{OUTER}.".encode()))
                elif "." in name.name or len(node.names) > 1:
                    raise ValueError(f"line {node.lineno}: import {name.name}; allowed: from, as, or a package alone")
                else:
                    places.append((starts[node.lineno - 1] + node.col_offset, f"from {OUTER} ".encode()))
    for place, words in sorted(places, reverse=True):
        text = text[:place] + words + text[place:]
    return text


def _is_inner(module: str) -> bool:
    return module.partition(".")[0] in INNER


class Wheel(build_py):
    """Builds the packages within trainsim, except for an editable install."""

    def run(self) -> None:
        """Copy the packages, then put them where they belong."""
        if self.editable_mode:
            super().run()
            return
        built = Path(self.build_lib)
        for name in (OUTER, *INNER):  # of an earlier build, some of it moved
            shutil.rmtree(built / name, ignore_errors=True)
        super().run()
        for name in INNER:
            (built / name).rename(built / OUTER / name)
        for path in (built / OUTER).rglob("*.py"):
            try:
                path.write_bytes(moved(path.read_bytes()))
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error


class Kernel(build_ext):
    """Compiles the kernel by Cython, and puts it where its package is."""

    def build_extension(self, ext: Extension) -> None:
        """Write one file of the kernel's, make C of it, and compile that."""
        from Cython.Build import cythonize

        sys.path.insert(0, str(Path(__file__).parent))
        from sim.language.engine import building

        source = Path(self.build_temp) / f"{building.NAME}.pyx"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(building.source())
        ext.sources = [str(source.with_suffix(".c"))]
        cythonize([Extension(ext.name, [str(source)])], quiet=True, force=True)
        super().build_extension(ext)

    def run(self) -> None:
        """Build it; where the packages are within trainsim, so is it."""
        super().run()
        if not self.editable_mode and not self.inplace:
            for path in (Path(self.build_lib) / "sim").rglob("_kernel*"):
                to = Path(self.build_lib) / OUTER / path.relative_to(self.build_lib)
                to.parent.mkdir(parents=True, exist_ok=True)
                path.rename(to)
            shutil.rmtree(Path(self.build_lib) / "sim", ignore_errors=True)


class Metadata(egg_info):
    """Names the one package that is there at the top."""

    def run(self) -> None:
        """Write the metadata."""
        super().run()
        (Path(self.egg_info) / "top_level.txt").write_text(f"{OUTER}\n")


setup(
    cmdclass={"build_py": Wheel, "build_ext": Kernel, "egg_info": Metadata},
    ext_modules=[
        Extension(
            "sim.language.engine._kernel",
            ["sim/language/engine/layout.py"],
            define_macros=[("CYTHON_LIMITED_API", "1"), ("Py_LIMITED_API", "0x030b0000")],
            py_limited_api=True,
            extra_compile_args=["-O2", "-g0", "-ffp-contract=off"],  # the same rounding on every processor
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
