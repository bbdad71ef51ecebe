"""What a run says to people: `build` makes a format-free `Report`, `formats` render it."""
