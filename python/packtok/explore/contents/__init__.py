"""The contents that pages show: the index with its metadata files, pbins, and tokenizers."""
