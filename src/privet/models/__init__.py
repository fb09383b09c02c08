"""Published models: how they predict, what they promise, and how they are written."""
