"""What an SGLang tree proves by its syntax alone: nothing of it is imported or run."""
