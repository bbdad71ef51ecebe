"""SGLang's log grammar: the line prefix and, one file per kind of line, what the lines say."""
