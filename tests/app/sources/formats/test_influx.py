"""Line protocol: what Telegraf may write comes back as it was, and nothing else is taken."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.sources.errors import InvalidRecord
from app.sources.formats import influx

FIELD = "records[0]"


def trees(text):
    return [influx.tree_of(line, FIELD) for line in influx.lines_in(text.encode()) if line is not None]


def escaped(name, special):
    return "".join(f"\\{c}" if c in special else c for c in name)


def written(value):
    match value:
        case bool():
            return "true" if value else "F"
        case int():
            return f"{value}i"
        case float():
            return repr(value)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def line_of(name, tags, fields, time):
    """Write a line as the protocol is documented."""
    key = escaped(name, ", ") + "".join(f",{escaped(k, ',= ')}={escaped(v, ',= ')}" for k, v in tags.items())
    pairs = [f"{escaped(k, ',= ')}={written(v)}" for k, v in fields.items()]
    return f"{key} {','.join(pairs)} {time}"


# a backslash escapes what follows it, so that no name may end in one or hold one before another character
NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="\\\n\x00\r\t\v\f", exclude_categories=["Cc"]), min_size=1
)
VALUES = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
)
POINTS = st.tuples(
    NAMES.filter(lambda name: not name.startswith("#") and name.strip()),
    st.dictionaries(NAMES, NAMES, max_size=4),
    st.dictionaries(NAMES, VALUES, min_size=1, max_size=5),
    # the outermost have a meaning of their own
    st.integers(-(2**63) + 2, 2**63 - 2),
)


@given(st.lists(POINTS, max_size=4), st.sampled_from(["\n", "\r\n", "\n\n", ' \n# told by "nobody\n']))
@example([("m", {"a": '5"'}, {"x": 1.0}, 1), ("m", {}, {"y": '"\n # "'}, 2)], "\n")
@example([("m", {}, {'"': False}, 0), ("m", {}, {"x": 1}, 0)], ' \n# told by "nobody\n')
@example([("a=b", {"c=d": "e="}, {"f=": "=="}, 1)], "\n")
def test_lines_come_back_as_they_were(points, between):
    text = between.join(line_of(*point) for point in points)
    expected = [
        {"name": name, "tags": tags, "fields": fields, "timestamp": time} for name, tags, fields, time in points
    ]
    read = trees(text)
    assert read == expected
    for tree, (_, _, fields, _) in zip(read, points, strict=True):
        assert list(tree["fields"]) == list(fields)
        assert [type(value) for value in tree["fields"].values()] == [type(value) for value in fields.values()]


@pytest.mark.parametrize(
    ("line", "limit"),
    [
        ("cpu", "measurement"),
        ("cpu x", "key of field"),
        ("cpu x=", "value of field"),
        ("cpu,host= x=1", "value of tag"),
        ("cpu,host=a,host=b x=1", "key of tag"),
        ("cpu x=1,y=2,x=3", "no field comes twice"),
        ('cpu x=1,y="a=b",x="c=d"', "no field comes twice"),
        ("cpu x=NaN", "type of field value"),
        ("cpu x=inf", "type of field value"),
        ("cpu x=1e999", "type of field value"),
        ("cpu x=99999999999999999999i", "type of field value"),
        ("cpu x=1 1.5", "timestamp"),
        ("cpu x=1 99999999999999999999", "timestamp"),
        ("cpu x=1 2 3", "timestamp"),
        ('cpu x="open 5', "value of field"),
        ("cpu x=1\x00 5", "nul"),
        ("cpu " + ",".join(f"x{i}=1" for i in range(1001)), "at most 1000"),
    ],
)
def test_other_lines_are_refused(line, limit):
    with pytest.raises(InvalidRecord, match=limit) as refused:
        trees(line)
    assert refused.value.field == FIELD
    assert len(str(refused.value.value)) <= 80


def test_a_line_that_is_no_text_is_refused():
    with pytest.raises(InvalidRecord, match="UTF-8"):
        influx.tree_of(b"cpu,host=\xff x=1 5", FIELD)


def test_a_wrong_line_spoils_no_other():
    lines = list(influx.lines_in(b'cpu,path=C:\\\ncpu,a=5" x=1 5\n\n# x="\n  mem y="no end 7'))
    assert lines == [b"cpu,path=C:\\", b'cpu,a=5" x=1 5', None, b'mem y="no end 7']


@given(st.binary(max_size=200) | st.text('m,a="x 1i\\\n#', max_size=60).map(str.encode))
def test_no_bytes_are_more_than_refused(body):
    for line in filter(None, influx.lines_in(body)):
        assert line.strip() == line.lstrip().rstrip()
        try:
            tree = influx.tree_of(line, FIELD)
        except InvalidRecord:
            continue
        assert tree["fields"]
