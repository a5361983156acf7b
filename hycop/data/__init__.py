"""Datasets: queries with their truth, in memory and in files (netCDF-4, npz, PDEBench)."""

from __future__ import annotations

from hycop.data.dataset import Dataset
from hycop.data.layout import XarrayDataset, is_xarray
from hycop.data.netcdf import checked_dataset_path, load, save
from hycop.data.pdebench import PDEBenchFile, write_pdebench

__all__ = [
    "Dataset",
    "PDEBenchFile",
    "XarrayDataset",
    "checked_dataset_path",
    "is_xarray",
    "load",
    "save",
    "write_pdebench",
]
