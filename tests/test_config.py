"""Settings of training: what they mean is written down, and what cannot be read is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.site.commands import settings_page
from hycop.errors import InvalidInputError
from hycop.training.config import GROUPS, PRESETS, TrainingConfig, configured, settings_from, settings_table


def test_every_setting_is_described_and_documented() -> None:
    rows = settings_table()
    assert {row.name for row in rows} == set(TrainingConfig.model_fields)
    assert [*dict.fromkeys(row.group for row in rows)] == [*GROUPS]
    text = settings_page()
    for row in rows:
        assert len(row.meaning) > 15
        assert f"| `{row.name}` | {row.meaning} | {row.default} | {row.allowed} |" in text
    assert text.count("| `") == len(rows)


def test_bounds_are_those_that_are_enforced() -> None:
    for row in settings_table():
        lowest, _, highest = row.allowed.replace(",", "").partition(" to ")
        if highest:
            assert getattr(configured("quick", {row.name: int(highest)}), row.name) == int(highest)
            for beyond in (int(lowest) - 1, int(highest) + 1):
                with pytest.raises(InvalidInputError, match=f"setting '{row.name}' is {beyond}: "):
                    configured("quick", {row.name: beyond})
    for preset in PRESETS:
        configured(preset)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (10**30, r"is 1000000000000000000000000000000: input should be less"),
        (16**9000, "is a number of thousands of digits: input should be less"),
        ("9" * 5000, r"is '9+\.\.\.9+': unable to parse"),
        ([[1]] * 10**5, r"is \[\[1\], .*\.\.\.\]: input should be a valid integer"),
    ],
    ids=["beyond 64 bits", "thousands of digits", "text of digits", "lists"],
)
def test_absurd_values_are_one_short_line(value: object, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said) as caught:
        configured("quick", {"samples": value})
    assert len(str(caught.value)) < 200 and "\n" not in str(caught.value)


def test_an_earlier_name_is_explained() -> None:
    with pytest.raises(InvalidInputError, match=r"^setting 'repeats' is now called substeps$"):
        configured("quick", {"repeats": 2})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 10**5, "nested too deeply"),
        ("samples: " + "9" * 5000, "a value cannot be read"),
        ("samples: 2001-99-99", "a value cannot be read"),
        ("samples: \udcff", "UTF-8"),
        ("5: 3", "write one setting per line"),
    ],
    ids=["nested", "digits", "date", "bytes", "keys"],
)
def test_files_that_are_no_settings(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(InvalidInputError, match=said) as caught:
        settings_from(file)
    assert str(caught.value).startswith(f"{file}: ") and "\n" not in str(caught.value)
