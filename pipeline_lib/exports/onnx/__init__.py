"""Students, encoders and teachers in ONNX."""
