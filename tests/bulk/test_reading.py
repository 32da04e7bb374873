"""Files that can be read are read alike whatever their form, and what cannot be read is named by file and row."""

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.bulk.reading.files import Files, find_files
from app.replay.reading.cells import BadTable
from app.replay.reading.columns import Columns
from app.replay.reading.lines import Form
from app.replay.reading.table import Meaning

ROLES = Columns("label", "time", "key", stream="host", known="known")
TABLE: dict[str, list[Any]] = {
    "host": ["b", "a", "b"],
    "time": [1.7e9, 1.7e9 + 60.5, 1.7e9 + 120],
    "key": ["k1", None, "k3"],
    "cpu": [1.5, None, -3.0],
    "mem": [1.0, 2.0, None],
    "label": [1, None, 0],
    "known": [1.7e9 + 500, None, None],
}


def csv_of(table: dict[str, list[Any]], path: Path) -> Path:
    cells = [",".join("" if one is None else str(one) for one in row) for row in zip(*table.values(), strict=True)]
    path.write_text("\n".join([",".join(table), *cells]) + "\n")
    return path


def parquet_of(table: dict[str, Any], path: Path) -> Path:
    pq.write_table(pa.table(table), path)
    return path


def read(*paths: Path, roles: Columns = ROLES, meaning: Meaning | None = None) -> list[dict[str, Any]]:
    files = Files(find_files(paths), roles, meaning or Meaning(), Form())
    features, _ = files.survey()
    return [
        {"file": file, "features": tuple(features)} | {name: getattr(block, name).tolist() for name in block.__slots__}
        for file, block in files.blocks(features)
    ]


def test_all_forms_say_the_same(tmp_path):
    from_csv = read(csv_of(TABLE, tmp_path / "a.csv"))[0]
    moments = [datetime.fromtimestamp(time).astimezone() for time in TABLE["time"]]
    forms = {
        "numbers": TABLE,
        "moments": TABLE | {"time": moments},
        "naive": TABLE | {"time": [moment.astimezone(tz=None).replace(tzinfo=None) for moment in moments]},
        "text": TABLE | {"time": [moment.isoformat() for moment in moments]},
        "booleans": TABLE | {"label": [True, None, False]},
        "names": TABLE | {"label": ["true", "", "false"], "host": pa.array(TABLE["host"]).dictionary_encode()},
    }
    for form, table in forms.items():
        found = read(parquet_of(table, tmp_path / f"{form}.parquet"))[0]
        for name in found.keys() - {"file", "rows"}:
            assert str(found[name]) == str(from_csv[name]), (form, name)
    assert (from_csv["rows"], found["rows"]) == ([2, 3, 4], [1, 2, 3])


def test_a_file_is_a_stream_unless_a_column_says_more(tmp_path):
    for name in ("b", "a"):
        csv_of({"cpu": [1.5, 2.5]}, tmp_path / f"{name}.csv")
    (tmp_path / "_SUCCESS").touch()
    assert [block["streams"] for block in read(tmp_path, roles=Columns())] == [["a", "a"], ["b", "b"]]


FAULTS: dict[str, tuple[dict[str, list[Any]], str]] = {
    "no time": ({"time": [1.7e9, None, 1.7e9]}, "{row}, column time: the timestamp '': every line needs a time"),
    "no such time": ({"time": [1.7e9, 5.0, 1.7e9]}, "{row}, column time: the timestamp '5"),
    "another label": ({"label": [1, 7, 0]}, "'7' (1 time, first in {row})"),
    "no stream": ({"host": ["a", None, "b"]}, "{row}: no stream is named"),
    "a stream of dots": ({"host": ["a", "..", "b"]}, "{row}: the stream '..' must be 1 to 128 letters"),
    "an id with a bell": ({"key": ["a", "b\x07", "c"]}, "{row}: the id 'b\\x07' must be at most 256 characters"),
    "a known time of 1970": ({"known": [None, 5.0, None]}, "{row}, column known: the timestamp '5"),
    "text": ({"cpu": ["1", "?", "2"]}, "cpu ("),
    "infinite": ({"cpu": [1.0, float("inf"), 2.0]}, "inf"),
}


@pytest.mark.parametrize(("of", "row"), [(csv_of, "line 3"), (parquet_of, "row 2")])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_row_that_cannot_be_read_is_named(tmp_path, fault, of, row):
    changes, said = FAULTS[fault]
    path = of(TABLE | changes, tmp_path / ("bad.csv" if of is csv_of else "bad.parquet"))
    with pytest.raises(BadTable) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert said.format(row=row) in str(raised.value)
    assert row in str(raised.value) or (fault == "text" and of is parquet_of)


REFUSED: dict[str, tuple[dict[str, bytes], str]] = {
    "nothing": ({}, "no file that ends with .csv, .csv.gz, .parquet"),
    "no parquet": ({"a.parquet": b"PAR1"}, "a.parquet: it cannot be read as Parquet"),
    "no header": ({"a.csv": b""}, "a.csv: the file is empty"),
    "two widths": ({"a.csv": b"cpu\n1\n", "b.csv": b"mem\n1\n"}, "b.csv has the features mem"),
    "two of a name": ({"a.csv": b"cpu\n1\n", "sub/a.csv": b"cpu\n1\n"}, "would both be stream a"),
    "no name": ({"a b.csv": b"cpu\n1\n"}, "the stream 'a b' must be"),
    "ragged": ({"a.csv": b"cpu,mem\n1,2\n3\n"}, "a.csv: line 3 has 1 cell"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_do_not_fit_are_named(tmp_path, case):
    files, said = REFUSED[case]
    for name, body in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(body)
    with pytest.raises(BadTable) as raised:
        read(tmp_path, roles=Columns())
    assert said in str(raised.value)


def test_rows_without_any_value_are_left_out_and_counted(tmp_path):
    table = {"cpu": [1.0, None, 3.0]}
    for path in (csv_of(table | {"x": ["", "", ""]}, tmp_path / "a.csv"), parquet_of(table, tmp_path / "b.parquet")):
        files = Files([path], Columns(features=("cpu",)), Meaning(), Form())
        features, notes = files.survey()
        assert any("left out: 1 " in note for note in notes), notes
        assert [block.X.tolist() for _, block in files.blocks(features)] == [[[1.0], [3.0]]]


def test_numbers_stay_exact(tmp_path):
    values = np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-25, 25)
    table = {"v": values.tolist()}
    for path in (csv_of(table, tmp_path / "a.csv"), parquet_of(table, tmp_path / "b.parquet")):
        assert read(path, roles=Columns())[0]["X"] == values[:, None].tolist()
