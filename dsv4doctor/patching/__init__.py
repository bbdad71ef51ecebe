"""Source fixes for an SGLang tree: each finds its place, edits it or says why not; text to text."""
