"""The fuzzer is a module of its own, and shares the node's settings with the simulation."""

import os
import sys

_here = os.path.dirname(__file__)
sys.path[:0] = [_here, os.path.join(os.path.dirname(_here), "sim")]
