"""Whole runs that are disturbed at random, again and again: they end in the undisturbed bytes.

    CHAOS_ROUNDS=20 CHAOS_SEED=7 pytest -m slow tests/chaos

CHAOS_ROUNDS (2) is how often each test disturbs its run, CHAOS_SEED (0) the seed of what is drawn: moments,
processes, files, bytes.  Moments are drawn, but what a process has done by then, the machine decides.  By default a
test takes one to three minutes; with more rounds it can run for hours.
"""
