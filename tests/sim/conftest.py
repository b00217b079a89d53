"""The story is a module of its own, so that it can also be run as a program."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
