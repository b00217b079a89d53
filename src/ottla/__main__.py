"""`python -m ottla`, the same as the `ottla` command."""

import sys

from ottla.cli.main import main

sys.exit(main())
