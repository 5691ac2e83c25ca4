"""Students: small models that stand where a transformers model stands.

A student is a single-sentence encoder plus a head, behind ``PreTrainedModel`` and
``PreTrainedTokenizerFast``, so that ``from_pretrained``, ``save_pretrained`` and ``pipeline`` work.
"""
