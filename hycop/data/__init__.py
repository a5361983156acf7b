"""Datasets: queries with their truth, in memory and in files (netCDF-4, npz, PDEBench)."""

from __future__ import annotations

from hycop.data.dataset import Dataset
from hycop.data.netcdf import checked_dataset_path, load, save
from hycop.data.pdebench import PDEBenchFile, write_pdebench

__all__ = ["Dataset", "PDEBenchFile", "checked_dataset_path", "load", "save", "write_pdebench"]
