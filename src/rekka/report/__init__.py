"""The report of a study: summarized as plain data, then drawn and written as a page, tables and figures."""
