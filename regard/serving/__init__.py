"""Trained runs over HTTP: who may ask (`guard`), and the verbs as JSON (`service`)."""
