"""`python -m dsv4doctor`."""

from dsv4doctor.cli.app import main

main()
