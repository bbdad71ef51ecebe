"""What is known to be bad: facts of a deployment in, findings with their evidence out."""
