"""Looking into stored sets row by row, in memory that does not grow with them.

Everything here reads shards as mapped files, a few thousand rows at a time.
"""
