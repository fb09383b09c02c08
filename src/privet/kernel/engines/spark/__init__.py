"""Frames and tables of Spark."""
