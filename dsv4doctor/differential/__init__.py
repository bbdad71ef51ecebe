"""Differential diagnosis: causes, arms, what each cause predicts, and what stands. Pure.

A symptom has several possible causes. An arm changes one thing; a cause says what must then become
of the symptom, and an arm that shows otherwise counts against it, by an e-value.
"""
