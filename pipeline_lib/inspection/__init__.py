"""Inspection of stored sets row by row, in constant memory.

Everything here reads shards as memory-mapped files, a few thousand rows at a time.
"""
