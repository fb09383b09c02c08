"""The compiler that every SQL engine shares."""
