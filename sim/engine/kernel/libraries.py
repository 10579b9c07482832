"""All functions of the kernel as one library of machine code, which is optimised once.

By itself numba optimises each function together with all that it calls, at each level of calls anew. The classes here are of numba's own
that it declares no types of; where they are others the event world goes on (sim/engine/choose.py).
"""

from __future__ import annotations

from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class Part(JITCodeLibrary):
    """The code of a function that others call. No machine code is made of it alone."""

    def finalize(self):
        """What the function calls is linked where all is."""
        self._finalized = True

    def get_pointer_to_function(self, name):
        """Nowhere."""
        return 0

    @property
    def codegen(self):
        """What is told where Python's objects are that the function needs: it needs none."""
        return self

    def set_env(self, name, env):
        """See above."""


class Whole(JITCodeLibrary):
    """The code of the function that Python calls, and of all that it calls."""

    def finalize(self):
        """Link each part once, optimise all, and make machine code of it."""
        found = list(self._linking_libraries)
        for library in found:  # which grows
            if isinstance(library, Part):
                found += [other for other in library._linking_libraries if other not in found]
        self._linking_libraries = found
        super().finalize()

    def _optimize_final_module(self):
        """Nobody else calls the parts, so that what is called at one place is put there."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal
        super()._optimize_final_module()


class CompilerOfParts(Compiler):
    """Numba's compiler, into parts."""

    def __init__(self, typingctx, targetctx, library, *others):
        super().__init__(typingctx, targetctx, library or Part(targetctx.codegen(), "part"), *others)


class CompilerOfAll(Compiler):
    """Numba's compiler, into one library that can be kept on disk."""

    def __init__(self, typingctx, targetctx, library, *others):
        library = library or Whole(targetctx.codegen(), "kernel")
        library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, *others)
