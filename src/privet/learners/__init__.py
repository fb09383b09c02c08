"""Learners: from a protected table to a model. They ask questions like everybody else, and see releases alone."""
