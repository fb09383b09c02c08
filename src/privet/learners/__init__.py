"""Learners ask, as everybody does: nothing in here sees a row of a protected table."""
