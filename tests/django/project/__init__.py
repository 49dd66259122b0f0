"""A small project as a user would write it: charges that must not be made twice."""
