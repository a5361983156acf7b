"""Queries with truth, a classical program, a program by hand, and what each costs."""

import hycop
from hycop.metrics import rel_l2


def main() -> None:
    problem = hycop.problem("adr2d")
    data = problem.sample(8, split="ood", seed=0)

    strang = hycop.splitting("strang").programs(data.query, problem.dictionary)
    print(strang[0])
    states, work = hycop.measure(strang, problem.dictionary, data.query)
    print(f"Strang    error {rel_l2(states, data.truth, data.query.setting).mean():.2e}  work {work.mean():.3g}")

    by_hand = hycop.Program.parse("advection 0.2 → diffusion 0.1 → reaction 0.2 → diffusion 0.1")
    states, work = hycop.measure(by_hand, problem.dictionary, data.query)
    print(f"by hand   error {rel_l2(states, data.truth, data.query.setting).mean():.2e}  work {work.mean():.3g}")

    limit = hycop.limit(problem.dictionary, data.query)
    print(f"the limit error {rel_l2(limit.states, data.truth, data.query.setting).mean():.2e}")

    # nothing below knows about the grid or the boundary: the same scheme in a box with walls, 24 x 20 cells
    walled = problem.sample(4, split="id", seed=0, shape=(24, 20), boundary="wall")
    muscl = problem.dictionaries["muscl"]
    ababa = hycop.splitting("ababa x4").programs(walled.query, muscl)
    states = hycop.run(ababa, muscl, walled.query)
    print(f"with walls, MUSCL: error {rel_l2(states, walled.truth, walled.query.setting).mean():.2e}")


if __name__ == "__main__":
    main()
