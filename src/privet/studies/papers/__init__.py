"""The experiments of the papers, one module each: what they ran, what they printed, and what we find."""
