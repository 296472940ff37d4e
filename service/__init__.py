"""The translation service: everything that runs in production.

Imports numpy, onnxruntime, grpcio, prometheus_client and sentencepiece;
never torch, onnx, `training` or `export`.
"""
