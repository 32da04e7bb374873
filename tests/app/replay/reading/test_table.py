"""Which columns of a file are features, what its cells mean, and what is refused before anything is used."""

import doctest
import gzip
import itertools
import time
from pathlib import Path
from typing import Any

import pytest

from app.replay.reading import cells, columns, labels, lines, times
from app.replay.reading.cells import BadTable
from app.replay.reading.columns import Columns
from app.replay.reading.lines import Form, Lines
from app.replay.reading.table import Meaning, Row, Table, open_table, read_table

TEXT = """\
row,host,cpu,mem,note,y
7,a,0.1,5e3,,1
8,b,,-2,,0

9,c,NaN,0,,
"""
LEFT_OUT = ("row", "host", "note")
PACKED = gzip.compress("".join(["x\n", *(f"{i * i}\n" for i in range(2000))]).encode())


def table_of(text: str, *, pipe: bool = False, form: Form | None = None, **options: Any) -> Table:
    roles = {name: options.pop(name) for name in list(options) if name in Columns.__dataclass_fields__}
    texts = text.splitlines(keepends=True)
    return read_table(
        Lines(lambda: iter(texts), form or Form(), can_repeat=not pipe), Columns(**roles), Meaning(**options)
    )


def rows_of(text: str, **options: Any) -> list[Row]:
    return list(table_of(text, **options))


def refusal(text: str, **options: Any) -> str:
    with pytest.raises(BadTable) as refused:
        rows_of(text, **options)
    return str(refused.value)


@pytest.mark.parametrize("module", [cells, columns, labels, lines, times])
def test_the_examples_in_the_docstrings_hold(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("pipe", [False, True])
def test_what_has_no_other_role_is_a_feature_and_empty_cells_are_missing(pipe: bool) -> None:
    table = table_of(TEXT, label="y", drop=LEFT_OUT, pipe=pipe)
    assert table.features == ("cpu", "mem")
    assert table.left_out == ["row", "host", "note"]
    assert list(table) == [Row([0.1, 5000.0], True), Row([None, -2.0], False), Row([None, 0.0], None)]


def test_chosen_columns_come_in_the_order_they_are_named() -> None:
    assert [row.values for row in rows_of(TEXT, features=("mem", "row"))] == [[5000, 7], [-2, 8], [0, 9]]


def test_ids_and_timestamps_are_no_features() -> None:
    table = table_of("t,id,x\n2026-01-01T01:00:00+01:00,17,2\n2026-01-01T00:00:01Z,18,3\n", timestamp="t", id="id")
    assert table.features == ("x",)
    assert list(table) == [Row([2.0], None, 1767225600.0, "17"), Row([3.0], None, 1767225601.0, "18")]


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999", "1_000", "0x10", "three"])
def test_a_cell_that_is_no_finite_number_is_named(cell: str) -> None:
    said = refusal(f"x,z\n1,1\n{cell},2\n", features=("x",))
    assert said.startswith(f"line 3, column x: {cell!r} is not a finite number; correct it")


@pytest.mark.parametrize("cell", ["", " ", "n/a", "NA", "null", "nan", "None", "-", "#N/A"])
def test_a_value_that_is_not_known_has_many_spellings(cell: str) -> None:
    assert [row.values for row in rows_of(f"x,z\n1,1\n{cell},2\n")] == [[1, 1], [None, 2]]


def test_columns_that_are_hardly_features_are_refused_all_at_once() -> None:
    text = "n,host,x,nothing,Label,x 2\n" + "".join(f"{i},h{i},{i % 3},,{i % 2},{i * 2}\n" for i in range(20))
    said = refusal(text.replace("\n7,h7,1", "\n7,h7,1.2.3"))
    assert "n (it counts the lines from '0' on)" in said
    assert "host (20 cells are no number, first in line 2: 'h0' is not a finite number)" in said
    assert "x (1 cell is no number, first in line 9: '1.2.3' is not a finite number)" in said
    assert "nothing (no value in any line)" in said
    assert "Label (called like a label)" in said
    assert "Leave out with --drop n,host,x,nothing,Label, correct the cells" in said
    assert "x 2" not in said


def test_the_advice_can_be_copied_whatever_the_names() -> None:
    said = refusal('"a, b",it\'s,x\nu,v,1\n')
    assert columns.names_of('"a, b",it\'s') == ("a, b", "it's")
    assert """--drop '"a, b",it'"'"'s'""" in said


@pytest.mark.parametrize(
    ("name", "values", "doubt"),
    [
        ("", ["5", "2", "8"], "Unnamed: 0 (it has no name, as an index has none)"),
        ("timestamp", ["5", "2", "8"], "timestamp (called like a time or an index)"),
        ("class", ["5", "2", "8"], "class (called like a label)"),
        ("seen", ["1700000000", "1700000000", "1700000300"], "seen (it looks like times in s)"),
        ("seen", ["1700000000000", "1700000000500", "1700000000700"], "seen (it looks like times in ms)"),
    ],
)
def test_an_index_a_label_or_a_time_is_a_feature_only_by_name(name: str, values: list[str], doubt: str) -> None:
    text = f"{name},x\n" + "".join(f"{value},{place**2}\n" for place, value in enumerate(values))
    assert doubt in refusal(text)
    known = name or "Unnamed: 0"
    assert [row.values[0] for row in rows_of(text, features=(known, "x"))] == [float(value) for value in values]


def test_a_cell_far_down_is_found_before_anything_is_used() -> None:
    text = "x\n" + "".join(f"{i * i % 17}\n" for i in range(2500)) + "oops\n"
    with pytest.raises(BadTable, match="first in line 2502: 'oops'"):
        next(iter(table_of(text)))
    # a pipe gives its lines only once
    with pytest.raises(BadTable, match="line 2502, column x: 'oops' is not a finite number"):
        list(table_of(text, pipe=True))
    assert next(iter(table_of(text, pipe=True))).values == [0]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "the file is empty"),
        ("x\n", {}, "no line after the header"),
        ("x,x\n1,2\n", {}, "twice: x; rename"),
        ("x,z\n1,2\n", {"label": "y"}, "no column y; there are x, z"),
        ("x,z\n1\n", {}, "line 2 has 1 cell, the header 2: complete it"),
        ("1,2\n3,4\n", {}, "the first line must name the columns, but it holds '1'; .* --header"),
        ("web,0.5\napp,4\n", {}, "but it holds '0.5'"),
        ("2026-01-01,5\n", {}, "but it holds '2026-01-01'"),
        ("name\nanna\n", {}, "name .1 cell is no number"),
        ("x,y\n1,1\n", {"label": "y", "drop": ("x",)}, "no column is left as a feature"),
        ("x,y\n1,1\n", {"label": "y", "features": ("x", "y")}, "the column y has two roles"),
        ("x,t\n1,\n", {"timestamp": "t"}, "line 2, column t: the timestamp '': every line needs a time"),
        ('x,z\n1,1\n1,"2\n3,4\n5,6\n', {}, "line 3 cannot be read as CSV: .*quotes"),
        ("x;z\n1,5;2\n", {}, "x .1 cell is no number, first in line 2: '1,5' has a decimal comma: write 1.5"),
    ],
)
def test_a_file_that_is_not_the_table_asked_for_is_refused(text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadTable, match=message):
        rows_of(text, **options)


def test_a_line_without_any_value_is_left_out_and_said() -> None:
    table = table_of("x,z,y\n1,1,0\n,NA,0\n2,,1\n", label="y")
    assert [row.values for row in table] == [[1, 1], [2, None]]
    assert table.survey().n_rows == 2
    assert "left out: 1 line without any value, the first is line 3" in table.survey().notes


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_are_guessed_and_said(separator: str) -> None:
    table = table_of("a,b c,y\n1,2,0\n3,,1\n".replace(",", separator), label="y")
    assert [row.values for row in table] == [[1, 2], [3, None]]
    assert len(table.survey().notes) == (separator != ",")


def test_names_and_separator_can_be_given() -> None:
    form = Form(separator="|", header=("a", "b"))
    assert [row.values for row in rows_of("1|2\n3|4\n", form=form)] == [[1, 2], [3, 4]]


def test_a_survey_knows_the_range_of_each_column() -> None:
    survey = table_of("a,b\n1,-5\nnan,1e3\n4,7\n").survey()
    assert [(c.name, c.n_rows, c.n_missing, c.low, c.high) for c in survey.columns] == [
        ("a", 3, 1, 1, 4),
        ("b", 3, 0, -5, 1000),
    ]


@pytest.mark.parametrize(
    ("cell", "label"), [("1", True), ("1.0", True), ("TRUE", True), ("false", False), ("0.0", False), ("-", None)]
)
def test_labels_are_read_in_their_usual_spellings(cell: str, label: bool | None) -> None:
    assert rows_of(f"x,y\n1,{cell}\n", label="y")[0].label is label


@pytest.mark.parametrize(
    ("values", "example"),
    [
        (["-1", "1", "1"], "--label-values=-1,1"),
        (["1", "-1", "-1"], "--label-values=1,-1"),
        (["no", "no", "yes"], "--label-values=yes,no"),
        (["1", "true", "0"], "--label-values='*,1'"),
        (["normal.", "normal.", "smurf.", "back."], "--label-values='*,normal.'"),
        (["2", "", "2"], "--label-values='*,2'"),
    ],
)
def test_labels_that_could_mean_the_opposite_must_be_told(values: list[str], example: str) -> None:
    text = "x,y\n" + "".join(f"1,{value}\n" for value in values)
    said = refusal(text, label="y")
    assert "column y holds the labels" in said
    assert "first in line 2" in said
    assert said.endswith(example)


def test_told_labels_mean_what_was_told() -> None:
    text = "x,y\n1,-1\n2,1\n3,\n4,-1\n"
    assert [row.label for row in rows_of(text, label="y", label_values=("-1", "1"))] == [True, False, None, True]
    assert [row.label for row in rows_of(text, label="y", label_values=("*", "-1"))] == [False, True, None, False]
    assert [row.label for row in rows_of("x,y\n1,None\n2,DoS\n", label="y", label_values=("DoS", "None"))] == [
        False,
        True,
    ]
    assert "line 3, column y: the label '1' is neither 0" in refusal(text, label="y", label_values=("0", "-1"))


def test_a_label_with_more_than_one_zero_behind_the_point_is_refused_before_anything_is_used() -> None:
    text = "x,y\n1,0\n2,1.0.0\n"
    with pytest.raises(BadTable, match=r"line 3, column y: the label '1\.0\.0' is neither 1"):
        table_of(text, label="y", label_values=("1", "0")).survey()
    with pytest.raises(BadTable, match=r"'1\.0\.0' \(1 time, first in line 3\)"):
        table_of(text, label="y").survey()


def test_more_anomalies_than_normal_samples_are_doubted() -> None:
    notes = table_of("x,y\n1,1\n2,1\n3,0\n", label="y").survey().notes
    assert [note for note in notes if note.startswith("warning: 67% of the labels say anomalous")]
    assert not table_of("x,y\n1,1\n2,0\n3,0\n", label="y").survey().notes


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_unit_of_times_is_guessed_and_said(unit: str) -> None:
    cell = 1_700_000_000 * int(times.UNITS[unit])
    table = table_of(f"t,x\n{cell},1\n", timestamp="t")
    assert [row.timestamp for row in table] == [1_700_000_000]
    assert f"the numbers of t are times in {unit}" in table.survey().notes
    told = table_of(f"t,x\n{cell},1\n", timestamp="t", timestamp_unit=unit)
    assert [row.timestamp for row in told] == [1_700_000_000]
    assert not told.survey().notes


@pytest.mark.parametrize(
    ("cell", "unit", "message"),
    [
        ("17", None, "'17': no time from 1990 to 2100 in s, ms, us or ns"),
        ("1700000000000", "s", "no time from 1990 to 2100 in s"),
        ("31/12/2025 10:00", None, "'31/12/2025 10:00': write ISO 8601"),
        ("0001-01-01", None, "no time from 1990 to 2100"),
    ],
)
def test_what_is_no_time_is_named(cell: str, unit: str | None, message: str) -> None:
    said = refusal(f"t,x\n{cell},1\n", timestamp="t", timestamp_unit=unit)
    assert said.startswith("line 2, column t: the timestamp ")
    assert message in said


def test_times_without_a_zone_are_those_of_the_zone_told() -> None:
    text = "t,x\n2026-07-01 02:00:00,1\n"
    naive = table_of(text, timestamp="t")
    assert [row.timestamp for row in naive] == [1782871200]
    assert any("no zone and are taken as UTC" in note for note in naive.survey().notes)
    told = table_of(text, timestamp="t", timezone="Europe/Berlin")
    assert [row.timestamp for row in told] == [1782871200 - 7200]
    assert not told.survey().notes


def test_the_hour_that_comes_twice_goes_on() -> None:
    text = "t,x\n" + "".join(
        f"2025-10-26 {clock},1\n" for clock in ("01:30", "02:00", "02:30", "02:00", "02:30", "03:00")
    )
    stamps = [row.timestamp for row in rows_of(text, timestamp="t", timezone="Europe/Berlin")]
    assert [b - a for a, b in itertools.pairwise(stamps)] == [1800] * 5  # type: ignore[operator]


def test_the_stream_decides_on_the_order_of_features() -> None:
    table = table_of("a,b,host\n1,2,h\n")
    table.choose(["b", "a"])
    assert [row.values for row in table] == [[2, 1]]
    assert table.left_out == ["host"]
    with pytest.raises(BadTable, match="feature c is not a column"):
        table.choose(["c"])


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_plain_and_packed_files_are_the_same(tmp_path: Path, name: str) -> None:
    data = '\ufeffx,z\r\n1.5,"2"\r\n'.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    with open_table(str(tmp_path / name), Columns()) as table:
        assert (table.features, list(table)) == (("x", "z"), [Row([1.5, 2.0])])


def test_other_encodings_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("größe;z\n1;2\n".encode("utf-16"))
    with open_table(str(path), Columns(), form=Form(encoding="utf-16")) as table:
        assert (table.features, list(table)) == (("größe", "z"), [Row([1.0, 2.0])])


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("binary.csv", b"\x89PNG\r\n", "line 1 is not written in utf-8: .*--encoding"),
        ("latin.csv", "x,ort\n1,a\n2,Köln\n".encode("latin-1"), "line 3 is not written in utf-8: .*K.xf6ln"),
        ("wide.csv", b"x,z\n1," + b"9" * 200_000, "line 2 cannot be read as CSV: field larger"),
        ("cut.csv.gz", PACKED[:-20], "the packed file is damaged"),
        ("spoilt.csv.gz", PACKED[:400] + b"x" * 100 + PACKED[500:], "the packed file is damaged"),
        ("plain.csv.gz", b"x,z\n1,2\n", "the packed file is damaged"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(BadTable, match=rf"{name}.*{message}"), open_table(str(tmp_path / name), Columns()) as table:
        list(table)


@pytest.mark.parametrize(
    ("encoding", "said"),
    [("ascii", "line 3 is not written in ascii: .*K.xf6ln"), ("utf-16", "it is not written in utf-16")],
)
def test_a_wrong_encoding_that_was_named_is_told_by_its_line_where_it_can_be(
    tmp_path: Path, encoding: str, said: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("x,ort\n1,a\n2,Köln\n".encode("latin-1"))
    with pytest.raises(BadTable, match=said), open_table(str(path), Columns(), form=Form(encoding=encoding)) as table:
        list(table)


def test_rows_past_the_look_ahead_are_read_as_they_come() -> None:
    text = "x\n" + "".join(f"{i % 7}\n" for i in range(2500))
    assert [row.values[0] for row in rows_of(text, pipe=True)] == [i % 7 for i in range(2500)]
    assert not table_of(text, pipe=True).survey().is_whole


def test_looking_through_a_file_costs_little_beside_reading_it() -> None:
    text = "a,b,c,d\n" + "0.25,1.5,-3,8\n" * 50_000
    table = table_of(text)
    began = time.process_time()
    table.survey()
    looked = time.process_time() - began
    began = time.process_time()
    assert sum(1 for _ in table) == 50_000
    assert looked < 6 * (time.process_time() - began)
