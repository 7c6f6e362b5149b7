"""Images without Docker or a registry: the content of `images/`'s Containerfiles, made here."""
