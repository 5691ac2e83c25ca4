"""Studies: predefined sweeps over params.yaml, each with a table and a plot."""
