"""Published models: what they promise, what they predict, and how they are written."""
