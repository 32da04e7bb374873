"""Rules: whom they are for, when they are quiet, and what is refused by name."""

from datetime import UTC, datetime

import pytest

from app.notices.rule import InvalidRule, QuietHours, Rule, check

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
GOOD = {"target": "webhook", "url": "https://hooks.example.org/x", "secret": SECRET}


@pytest.mark.parametrize(
    ("streams", "stream", "fits"),
    [("*", "a", True), ("web-*", "web-1", True), ("web-*", "we", False), ("web", "web", True), ("web", "web-1", False)],
)
def test_a_rule_is_for_a_stream_or_a_prefix(streams, stream, fits):
    assert Rule(**GOOD, streams=streams).fits(stream) is fits


@pytest.mark.parametrize(
    ("begin", "end", "zone", "at", "quiet"),
    [
        ("22:00", "07:00", "UTC", "22:00", True),
        ("22:00", "07:00", "UTC", "06:59", True),
        ("22:00", "07:00", "UTC", "07:00", False),
        ("12:00", "13:00", "UTC", "12:30", True),
        ("12:00", "13:00", "UTC", "13:00", False),
        ("22:00", "07:00", "Asia/Tokyo", "14:00", True),
        ("22:00", "07:00", "Asia/Tokyo", "22:30", False),
    ],
)
def test_quiet_hours_go_by_the_clock_of_their_zone_and_span_midnight(begin, end, zone, at, quiet):
    now = datetime.fromisoformat(f"2026-11-29T{at}:00").replace(tzinfo=UTC).timestamp()
    assert Rule(**GOOD, quiet_hours=QuietHours(begin, end, zone)).is_quiet(now) is quiet


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("streams", {"streams": "web-*-1"}),
        ("streams", {"streams": ""}),
        ("streams", {"streams": "a b"}),
        ("url", {"url": "ftp://example.org"}),
        ("url", {"url": "hooks.example.org"}),
        ("url", {"url": "https://"}),
        ("url", {"url": "https://example.org:99999"}),
        ("url", {"url": "https://user:hunter2@example.org/"}),
        ("url", {"url": "https://example.org/#part"}),
        ("url", {"url": "https://example.org/\n"}),
        ("secret", {"secret": ""}),
        ("secret", {"secret": "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}),
        ("secret", {"secret": "whsec_c2hvcnQ="}),
        ("secret", {"secret": "whsec_!!!!"}),
        ("secret", {"target": "chat"}),
        ("secret", {"target": "alertmanager", "secret": "two\r\nlines: of headers"}),
        ("tell", {"tell": ["opened", "opened"]}),
        ("tell", {"target": "alertmanager", "secret": "", "tell": ["opened"]}),
        ("quiet_hours.begin", {"quiet_hours": QuietHours("24:00", "07:00")}),
        ("quiet_hours.end", {"quiet_hours": QuietHours("22:00", "22:00")}),
        ("quiet_hours.timezone", {"quiet_hours": QuietHours("22:00", "07:00", "Mars/Olympus")}),
        ("quiet_hours.timezone", {"quiet_hours": QuietHours("22:00", "07:00", "../../etc/passwd")}),
    ],
)
def test_a_bad_rule_is_refused_by_name_and_never_repeats_a_secret(field, given):
    with pytest.raises(InvalidRule) as refused:
        check(Rule(**GOOD | given))
    assert refused.value.field == field
    assert not any(secret in str(refused.value) for secret in ("hunter2", "whsec_MfK", "c2hvcnQ", "of headers"))


def test_good_rules_are_taken():
    check(Rule(**GOOD))
    check(Rule(target="chat", url="http://[2001:db8::1]:8080/hooks/x?y=z"))
    check(Rule(target="alertmanager", url="http://alertmanager:9093", secret="token"))
