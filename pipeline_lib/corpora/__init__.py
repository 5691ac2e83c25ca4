"""Where text, models and word vectors come from.

``packages`` and ``archives`` get pinned files out of packages, ``fetching`` and ``models`` lay down
what a source of params.yaml names, ``tables`` reads rows of every format, ``labelled`` turns them
into examples with class numbers, ``splits`` draws dev and test, ``vectors`` reads word vectors.
``articles`` reads Wikipedia's forms, ``markup`` takes their text out of its markup, ``wikipedia``
streams a whole source in chunks, ``neighbours`` makes a pair task of its sentences.
"""
