"""The commands of ``distill``, one module per group; nothing heavy is imported until one runs."""
