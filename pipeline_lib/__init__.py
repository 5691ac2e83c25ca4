"""Distilling BERT-class teachers into small students.

The rooms, from the lowest to the highest; each imports from those before it only: ``base`` (errors,
files, layout, devices), ``params`` (what params.yaml says), ``storage`` (shards and the store),
``engine`` (who computes), ``text`` (words, tokens, lexicon), ``sources`` (pinned bytes from
somewhere), ``cpu`` (faster versions of what torch does too), ``networks`` (the students' layers),
``training`` (the one loop), ``tasks`` (labelled rows, their tags and metrics), ``wikipedia``
(sentences without labels), ``augmentation`` (transfer sets), ``students``, ``teachers``,
``distillation`` (params.yaml's rows made into trainings), ``retrieval`` (vectors compared with
many others), ``evaluation``, ``inspection`` (stored rows, looked into), ``report``, ``exports``
(students in other people's formats), ``studies``, ``onboarding`` (from files to parameters),
``commands``.
"""

__version__ = "0.1.0"
