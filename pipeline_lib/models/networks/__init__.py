"""Student networks in torch.

The modules import each other by relative imports, and nothing else of the library: an exported
student carries those that it needs (:func:`pipeline_lib.exports.folders.copy_code`).
"""
