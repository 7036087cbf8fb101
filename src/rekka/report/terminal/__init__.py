"""Results in a terminal: studies, forecasts, models, backtests and findings as tables and sentences."""
