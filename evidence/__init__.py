"""What the papers and the design's prototypes report, measured again with privet: `make evidence`."""
