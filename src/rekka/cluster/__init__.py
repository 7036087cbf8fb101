"""Work on a Dask cluster: trials and draws as tasks, and rows that stay with its workers."""
