"""`python -m regard`, and so `torchrun -m regard train ...`."""

from regard.cli import main

main()
