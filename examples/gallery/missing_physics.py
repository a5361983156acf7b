"""
Name a missing term, and add it
===============================

The model knows advection and diffusion. The data come from a world that also reacts, u_t = … + r u (1 − u). The
file has a coefficient r for each sample, but nobody has told the model what it does.
"""

import matplotlib.pyplot as plt
import numpy as np

import hycop
from hycop.metrics import rel_l2
from hycop.plots import draw_difference

known = hycop.problem("ad2d")
train = known.sample(96, split="train", seed=0, shape=(16, 16), estimated=0)
model = hycop.HyCOP(known.dictionary).fit(train, seed=0, tries=1, patterns=1, rounds=1, verbose=False)
measured = hycop.problem("adr2d").sample(24, split="id", seed=1, shape=(16, 16), estimated=0)

# %%
# Naming needs pairs of an initial and a later state, and nothing else.
missing = hycop.name_missing(model, measured)
print(missing)
for term in missing.terms:
    print(f"{term.term}: {term.coefficient:.4f} ± {term.error:.4f}")

# %%
# ``enrich`` adds the named terms as a primitive and learns the policy again, nothing else.
mended = hycop.enrich(model, measured, closure="symbolic")
print(f"held-out error {mended.before:.1e} → {mended.after:.1e}")
print(mended.model.dictionary["closure"])

# %%
test = hycop.problem("adr2d").sample(8, split="id", seed=2, shape=(32, 32), estimated=0)
without_r = hycop.Setting(
    test.setting.grid, test.setting.channels, {name: v for name, v in test.setting.params.items() if name != "r"}
)
before = model.answer(hycop.Query(test.query.u0, without_r, test.query.time)).states
after = mended.model.answer(test.query).states
pick = int(np.argmax(test.truth.std(axis=(1, 2, 3))))
figure, panels = plt.subplots(1, 2, figsize=(7.5, 3.4), layout="constrained")
for axes, (name, u) in zip(panels, {"before": before, "enriched": after}.items(), strict=True):
    error = rel_l2(u, test.truth, test.setting)[pick]
    draw_difference(axes, u[pick, 0] - test.truth[pick, 0], (1.0, 1.0), f"error {name}: {error:.1e}")
plt.show()
