"""Findings to look at: drawings, the page of a study with its explorer, the page of many, and lines for a terminal."""
