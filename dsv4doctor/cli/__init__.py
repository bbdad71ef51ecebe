"""The command line: one file a command, imported when it runs."""

from dsv4doctor.cli.early import leave_quietly_on_interrupt

leave_quietly_on_interrupt()
