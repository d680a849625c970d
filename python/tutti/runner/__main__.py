import sys

from tutti.runner.command import main

sys.exit(main())
