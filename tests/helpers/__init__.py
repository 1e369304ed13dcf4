"""What the tests of several rooms share; found because tests/conftest.py puts `tests/` on the path of every test."""
