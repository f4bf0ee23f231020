"""The programs that come with this package."""

from __future__ import annotations

import os
import shutil
import sysconfig

from ..errors import PackageError


def find_program(name: str) -> str:
    """Returns the path of a program: in `$MLXCEL_PROGRAMS`, beside this interpreter, or on the `PATH`.

    Raises:
        PackageError: it is in none of them.
    """
    folders = [os.environ.get("MLXCEL_PROGRAMS", ""), sysconfig.get_path("scripts"), *os.get_exec_path()]
    found = shutil.which(name, path=os.pathsep.join(folder for folder in folders if folder))
    if found is None:
        raise PackageError(
            f"found no program {name}, expected it beside {sysconfig.get_path('scripts')}/python or on the PATH",
            found=f"no program {name}",
            expected="one beside the interpreter or on the PATH",
            hint=f"export MLXCEL_PROGRAMS=FOLDER, with the folder that has {name}",
        )
    return found
