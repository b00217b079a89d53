"""`python -m ottla`: the same as the command `ottla`."""

import sys

from ottla.cli.main import main

sys.exit(main())
