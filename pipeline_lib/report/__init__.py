"""What is shown of the results: metrics.json, the Markdown report, the terminal's table."""
