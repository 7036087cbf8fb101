"""Commands of ``rekka``: parse, call one function of the library, print."""
