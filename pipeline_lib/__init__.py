"""distillery: compress BERT-class models into students a hundred times smaller.

The stages in ``stages/`` are thin commands; everything they do is in this package.  Read it in the
order of the flow: ``corpora`` (where text comes from), ``text`` (words, tags, lexicon),
``augmentation``, ``teachers``, ``students``, ``training``, ``evaluation``, ``report``; below them
lie ``shards`` (Arrow files on disk), ``store`` (teacher outputs by content) and ``params``.
"""

__version__ = "0.1.0"
