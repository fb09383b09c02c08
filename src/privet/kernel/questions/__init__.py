"""All questions that can be asked of a table: one class for each, in a file with its kin."""
