"""Every table and figure of the source paper, and where this project has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A table, panel or figure of the source paper: its number, its LaTeX label, what it shows, and our table with the
    parts and figures that answer it. ``note`` says what is different, or why there is none."""

    number: str
    label: str
    title: str
    table: str | None
    parts: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        ours = "none" if self.table is None else self.table
        ours += f" ({', '.join(self.parts)})" if self.parts else ""
        ours += f", {', '.join(f'{stem}.png' for stem in self.figures)}" if self.figures else ""
        return f"{self.number} {self.title} -> {ours}" + (f"; {self.note}" if self.note else "")


def _splits(stem: str) -> tuple[str, ...]:
    return f"{stem}_id", f"{stem}_ood"


def _with(name: str, *baselines: str) -> tuple[str, ...]:
    """The part of a problem, and those of its opponents."""
    return (name, *(f"{name} {other}" for other in ("unsplit", *baselines)))


def _fixed(name: str) -> tuple[str, ...]:
    return _with(name, "deeponet", "fno", "pino", "local-no")


def _steps(name: str) -> tuple[str, ...]:
    return _with(name, "ar-unet", "step-local-no", "ar-local-no")


def _line(name: str) -> tuple[str, ...]:
    return _with(name, "fno", "local-no")


POSEIDON = "without Poseidon"
DRAWING = "a drawing without numbers"

PUBLISHED = (
    Published(
        "Table 1(a)",
        "tab:regime_a",
        "2D compressible Navier–Stokes",
        "ns",
        (*_with("ns2d-pdebench", "deeponet", "fno", "pino", "unet"), "ns2d", "ns2d unsplit"),
        note="HyCOP-Hyb: regime-b (compressible flow)",
    ),
    Published(
        "Table 1(b)",
        "tab:regime_a",
        "fixed time, 2D SWE and 2D ADR",
        "fixed-time",
        (*_fixed("swe2d"), *_fixed("adr2d")),
    ),
    Published("Table 1(c)", "tab:regime_a", "long horizon, 2D SWE", "trajectory", _steps("swe2d"), note=POSEIDON),
    Published("Table 1(d)", "tab:regime_a", "long horizon, 2D ADR", "trajectory", _steps("adr2d")),
    Published(
        "Table 2",
        "tab:dambreak",
        "dam break from periodic SWE",
        "dambreak",
        ("wet bed", "dry bed", "wet bed unsplit", "wet bed baselines"),
        note=POSEIDON,
    ),
    Published(
        "Table 3",
        "tab:regime_b",
        "regime B on 2D ADR",
        "regime-b",
        note="path (a): regime-b-residual; monolithic baselines: fixed-time (adr2d fno, …)",
    ),
    Published("Table 4", "tab:positioning", "positioning", None, note="words, no numbers"),
    Published(
        "Table 5(a)", "tab:ablations", "features: dimensionless or raw", "features", note="on adr2d instead of swe1d"
    ),
    Published("Table 5(b)", "tab:ablations", "population and noise of the ES", "es", figures=("es",)),
    Published("Table 5(c)", "tab:ablations", "resolution transfer", "resolution", ("id", "ood"), ("resolution",)),
    Published(
        "Table 5(d)",
        "tab:ablations",
        "dictionary robustness",
        "robustness",
        ("redundant swe2d", "missing"),
        note="with a residual: regime-b-residual",
    ),
    Published("Table 5(e)", "tab:ablations", "Kuramoto–Sivashinsky", "ks", ("direct", "attractor", "direct unsplit")),
    Published("Table 5(f)", "tab:ablations", "computational cost", "cost", ("swe2d", "swe2d baselines"), note=POSEIDON),
    Published("Table 6", "tab:benchmark_coverage", "benchmark coverage", "coverage", ("facts",)),
    Published("Table 7", "tab:dictionary", "dictionary and policy size", "dictionary"),
    Published("Table 8(a)", "tab:1d_benchmarks", "1D advection–diffusion", "1d", _line("ad1d")),
    Published(
        "Table 8(b)",
        "tab:1d_benchmarks",
        "1D Burgers",
        "1d",
        (*_line("burgers1d"), "burgers1d same grid"),
    ),
    Published("Table 8(c)", "tab:1d_benchmarks", "1D shallow water", "1d", _line("swe1d")),
    Published("Table 9", "table:adr_id", "2D ADR, all metrics, in distribution", "fixed-time", _fixed("adr2d")),
    Published("Table 10", "table:adr_ood", "2D ADR, all metrics, out of distribution", "fixed-time", _fixed("adr2d")),
    Published("Table 11", "table:app_sw_id", "2D SWE, all metrics, in distribution", "fixed-time", _fixed("swe2d")),
    Published(
        "Table 12", "table:app_sw_ood", "2D SWE, all metrics, out of distribution", "fixed-time", _fixed("swe2d")
    ),
    Published(
        "Table 13",
        "tab:app_adr_multistep_id",
        "2D ADR trajectory, in distribution",
        "trajectory",
        _steps("adr2d"),
    ),
    Published(
        "Table 14",
        "tab:app_adr_multistep_ood",
        "2D ADR trajectory, out of distribution",
        "trajectory",
        _steps("adr2d"),
    ),
    Published(
        "Table 15",
        "tab:swe_multistep_id_app",
        "2D SWE trajectory, in distribution",
        "trajectory",
        _steps("swe2d"),
        note=POSEIDON,
    ),
    Published(
        "Table 16",
        "tab:swe_multistep_ood_app",
        "2D SWE trajectory, out of distribution",
        "trajectory",
        _steps("swe2d"),
        note=POSEIDON,
    ),
    Published("Table 17", "table:adr-zeroshot", "models of AD asked about ADR", "zero-shot"),
    Published(
        "Poseidon",
        "",
        "in Tables 1(c), 2, 5(f), 15 and 16",
        None,
        note="not available: its weights come from a model hub that cannot be reached; no number of ours",
    ),
    Published("Figure 1", "fig:cde_loop", "compose, diagnose, enrich", None, note=DRAWING),
    Published(
        "Figure 2",
        "fig:pipeline",
        "HyCOP at a glance",
        "interpretation",
        note="panel (c), time against regime numbers; the others are drawings",
    ),
    Published("Figure 3", "fig:theory_roadmap", "theorems", None, note=DRAWING),
    Published(
        "Figure 4",
        "fig:combined",
        "dam break: surface and slice",
        "dambreak",
        figures=("dambreak_stoker", "dambreak_pyclaw_straight", "dambreak_pyclaw_circular"),
    ),
    Published(
        "Figure 5",
        "fig:hycop_training_es",
        "training with the ES",
        "learner",
        ("paper",),
        ("learner_paper_curve",),
        note="a drawing there; our learning curve of that algorithm",
    ),
    *(
        Published(
            f"Figure {6 + 2 * index + place}", f"fig:{label}_{split}", f"{title}, {split}", table, figures=(stem,)
        )
        for index, (label, title, table, name) in enumerate(
            (
                ("1d_ad", "1D advection–diffusion", "1d", "ad1d"),
                ("1d_swe", "1D shallow water", "1d", "swe1d"),
                ("1d_burgers", "1D Burgers", "1d", "burgers1d"),
                ("2d_adr", "2D ADR", "fixed-time", "adr2d"),
                ("2d_swe", "2D SWE", "fixed-time", "swe2d"),
            )
        )
        for place, (split, stem) in enumerate(zip(("id", "ood"), _splits(name), strict=True))
    ),
    *(
        Published(
            f"Figure {16 + 2 * index + place}",
            f"fig:2d-{label}-traj-{split}",
            f"2D {label.upper()} trajectory, {split}",
            "trajectory",
            figures=(f"trajectory_{name}_{split}",),
        )
        for index, (label, name) in enumerate((("adr", "adr2d"), ("swe", "swe2d")))
        for place, split in enumerate(("id", "ood"))
    ),
    Published(
        "Figure 20",
        "fig:adr_residual",
        "AD to ADR by enrichment",
        "regime-b-residual",
        figures=("regime_b_residual",),
    ),
    *(
        Published(f"Figure {21 + place}", label, f"Kuramoto–Sivashinsky, {split}", "ks", figures=(f"ks_{split}",))
        for place, (label, split) in enumerate(
            (
                ("fig:1d-ks-id", "id"),
                ("fig:1d_ks_ood_w", "ood-w"),
                ("fig:1d_ks_ood_t", "ood-t"),
                ("fig:1d_ks_ood_wt", "ood-wt"),
            )
        )
    ),
)
"""In the order of the paper: tables first, then figures."""
