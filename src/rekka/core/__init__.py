"""What every other package stands on: errors, files, compiled code, the terminal."""
