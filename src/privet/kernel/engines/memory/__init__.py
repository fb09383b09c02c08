"""The engine of frames and merged rows, and rows in batches."""
