"""A study looked over when it is done: numbered findings, the codes going on where the data doctor's end."""
