"""Datasets: queries with their truth, in memory and in files (netCDF-4, npz, PDEBench, The Well)."""

from __future__ import annotations

from hycop.data.blocks import BlockWriter
from hycop.data.dataset import Dataset
from hycop.data.layout import XarrayDataset, is_xarray
from hycop.data.layouts import dataset_writer
from hycop.data.netcdf import checked_dataset_path, load, save
from hycop.data.pdebench import PDEBenchFile, write_pdebench
from hycop.data.the_well import WellFile
from hycop.data.well_writer import write_well

__all__ = [
    "BlockWriter",
    "Dataset",
    "PDEBenchFile",
    "WellFile",
    "XarrayDataset",
    "checked_dataset_path",
    "dataset_writer",
    "is_xarray",
    "load",
    "save",
    "write_pdebench",
    "write_well",
]
