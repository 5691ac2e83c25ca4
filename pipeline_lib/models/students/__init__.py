"""Students: small models that are drop-in replacements for transformers models.

A student is a single-sentence encoder plus a head, behind ``PreTrainedModel`` and
``PreTrainedTokenizerFast``, so that ``from_pretrained``, ``save_pretrained`` and ``pipeline`` work.
"""
