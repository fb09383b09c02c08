"""The embedded engine: files, and tables of DuckDB."""
