"""The output path of the lab: generated text through a DSML tool parser of SGLang's behaviour."""
