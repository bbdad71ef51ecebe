"""SGLang's serving metrics, from records: what `bench` counts, by the definitions it shares."""
