"""Foreign primitives: somebody's function, network, program or service, used like any other primitive.

- ``function.ForeignFunction``: any Python callable
- ``network.OnnxNetwork``: an ONNX file (extra ``onnx``)
- ``program.ExternalProgram``: an external program, started for each sample or kept alive
- ``tesseract.TesseractSolver``: a Tesseract, in this process or served (extra ``tesseract``)

``contract.Foreign`` is what they share.
"""
