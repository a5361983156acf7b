"""A model that lacks a process: find out why it errs, name what is missing, and add it. Only the policy is retrained.

The model knows advection and diffusion. The data come from a world that also reacts, u_t = … + r u (1 − u). The file
has a coefficient r for each sample, but nobody has told the model what it does.
"""

import hycop

known = hycop.problem("ad2d")
model = hycop.HyCOP(known.dictionary).fit(known, seed=0, samples=60, rounds=1)
measured = hycop.problem("adr2d").sample(48, split="id", seed=1, estimated=4)

diagnosis = hycop.diagnose(model, measured, most=16)
print(diagnosis.verdict)
print(diagnosis.missing)

mended = hycop.enrich(model, measured, closure="symbolic")
print(mended)
print(mended.model.dictionary["closure"])  # the new primitive is data: terms and numbers

# a model like any other: other states, grids and times
u0 = hycop.problem("adr2d").sample(1, split="id", seed=2, shape=(48, 40), estimated=1).states[:, 0]
params = {"cx": 1.0, "cy": 0.5, "Dx": 0.1, "Dy": 0.1, "r": 0.8}
answer = mended.model.answer(mended.model.query(u0, params, times=[0.1, 0.2]))
print(answer.programs[0], answer.error)
