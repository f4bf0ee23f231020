"""Writes arrays for the tests."""

import io
import zipfile

import numpy as np


def save(path, arrays):
    """Writes an npz file that has the same bytes every time: its members have no time of their own."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, array in arrays.items():
            file = io.BytesIO()
            np.save(file, np.asarray(array))
            archive.writestr(zipfile.ZipInfo(f"{key}.npy"), file.getvalue(), zipfile.ZIP_DEFLATED)
