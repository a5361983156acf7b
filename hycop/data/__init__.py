"""Datasets: queries with their truth, in memory and in files (netCDF-4 and npz)."""

from __future__ import annotations

from hycop.data.dataset import Dataset
from hycop.data.netcdf import checked_dataset_path, load, save

__all__ = ["Dataset", "checked_dataset_path", "load", "save"]
