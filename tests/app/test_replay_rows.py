"""Which columns of a file are features, and what its cells mean."""

import gzip
from pathlib import Path

import pytest

from app.replay.rows import BadTable, Columns, Row, open_table, read_table

TEXT = """\
row,host,cpu,mem,note,y
7,a,0.1,5e3,,1
8,b,,-2,,0

9,c,NaN,0,,
"""


PACKED = gzip.compress("".join(["x\n", *(f"{i * i}\n" for i in range(2000))]).encode())


def rows_of(text: str, columns: Columns) -> list[Row]:
    return list(read_table(text.splitlines(keepends=True), columns))


def test_numeric_columns_are_features_and_empty_cells_are_missing() -> None:
    table = read_table(TEXT.splitlines(), Columns(label="y", drop=("row",)))
    assert table.features == ("cpu", "mem")
    assert list(table) == [Row([0.1, 5000.0], True), Row([None, -2.0], False), Row([None, 0.0], None)]


def test_chosen_columns_come_in_the_order_they_are_named() -> None:
    assert [row.values for row in rows_of(TEXT, Columns(features=("mem", "row")))] == [[5000, 7], [-2, 8], [0, 9]]


def test_ids_and_timestamps_are_no_features() -> None:
    table = read_table(["t,id,x\n", "1.5,17,2\n", "2026-01-01T00:00:00Z,18,3\n"], Columns(timestamp="t", id="id"))
    assert table.features == ("x",)
    assert list(table) == [Row([2.0], None, 1.5, "17"), Row([3.0], None, "2026-01-01T00:00:00Z", "18")]


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999", "1_000", "0x10", "three"])
def test_a_cell_that_is_no_finite_number_is_named(cell: str) -> None:
    with pytest.raises(BadTable, match=r"line 3, column x.*not a finite number"):
        rows_of(f"x,z\n1,1\n{cell},2\n", Columns(features=("x",)))


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("", Columns(), "the file is empty"),
        ("x,x\n1,2\n", Columns(), "twice: x"),
        ("x,z\n1,2\n", Columns(label="y"), "no column y; there are x, z"),
        ("x,z\n1\n", Columns(), "line 2 has 1 cells, the header 2"),
        ("1,2\n3,4\n", Columns(), "the first line must name the columns"),
        ("name\nanna\n", Columns(), "no numeric column"),
        ("x,y\n1,maybe\n", Columns(label="y"), "label 'maybe'"),
        ("x,t\n1,\n", Columns(timestamp="t"), "line 2 has no timestamp"),
    ],
)
def test_a_file_that_is_not_the_table_asked_for_is_refused(text: str, columns: Columns, message: str) -> None:
    with pytest.raises(BadTable, match=message):
        rows_of(text, columns)


@pytest.mark.parametrize(("cell", "label"), [("1", True), ("1.0", True), ("TRUE", True), ("-1", False), ("0.0", False)])
def test_labels_are_read_in_their_usual_spellings(cell: str, label: bool) -> None:
    assert rows_of(f"x,y\n1,{cell}\n", Columns(label="y"))[0].label is label


def test_the_stream_decides_on_the_order_of_features() -> None:
    table = read_table(["a,b\n", "1,2\n"], Columns())
    table.choose(["b", "a"])
    assert [row.values for row in table] == [[2, 1]]
    with pytest.raises(BadTable, match="feature c is not a column"):
        table.choose(["c"])


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_plain_and_packed_files_are_the_same(tmp_path: Path, name: str) -> None:
    data = "\ufeffx\n1.5\n".encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    with open_table(str(tmp_path / name), Columns()) as table:
        assert (table.features, list(table)) == (("x",), [Row([1.5])])


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("binary.csv", b"\x89PNG\r\n"),
        ("wide.csv", b"x,z\n1," + b"9" * 200_000),
        ("cut.csv.gz", PACKED[:-20]),
        ("spoilt.csv.gz", PACKED[:400] + b"x" * 100 + PACKED[500:]),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(BadTable, match=rf"{name} cannot be read"), open_table(str(tmp_path / name), Columns()) as table:
        list(table)


def test_rows_past_the_look_ahead_are_read_as_they_come() -> None:
    lines = ["x\n", *(f"{i}\n" for i in range(2500))]
    assert [row.values[0] for row in read_table(lines, Columns())] == list(range(2500))
