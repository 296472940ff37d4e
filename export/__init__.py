"""From a trained translator to a bundle that can be served: graphs, int8, proof of parity, files.

Owns the translation of the torch networks into ONNX. Imports `training` for the networks and
`service` for the bundle format, the search and the runtime; nothing imports it.

    graphs/      the encoder and step graphs of each architecture, in any precision
    cuda/        whether they would run on a GPU as they should
    quantize     activation ranges measured on real sentences
    verify       torch and the graphs must agree, or no bundle is written
    build        checkpoint -> bundle
    rebuild      any bundle -> torch network, and bundles of floats
    inspection/  what a bundle consists of, and its model card
"""
