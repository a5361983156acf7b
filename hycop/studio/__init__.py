"""An interactive page for a model: sliders, programs, fields, error estimates. Needs the extra ``studio``."""
