"""A miniature SGLang deployment on a virtual clock: real bytes, real races, known faults."""
