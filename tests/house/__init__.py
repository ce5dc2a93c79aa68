"""Rules about the code and the documents themselves."""
