"""Reads history: files and folders of CSV or Parquet, as blocks of samples of many streams."""
