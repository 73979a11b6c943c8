"""Recipes: a file that says which steps turn which drafters into what, and a runner that does what is not done yet."""
