"""The samples of one request: the forms they come in, what makes them invalid, and what is answered."""
