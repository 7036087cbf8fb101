"""The study of scaling methods: its trials, its tables and what they say of the paper's hypotheses."""
