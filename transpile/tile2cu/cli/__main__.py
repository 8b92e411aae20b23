import sys

from tile2cu.cli import main

sys.exit(main())
