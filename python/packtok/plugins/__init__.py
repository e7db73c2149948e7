"""Source plug-ins: functions that yield the documents of a corpus, named by the option ``source``."""
