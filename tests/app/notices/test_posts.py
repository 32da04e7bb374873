"""What each target is sent."""

import base64
import hashlib
import hmac

import msgspec
import pytest

from app.api.schemas.incidents import IncidentAnswer
from app.notices.notice import Told, notice_id, notice_of, trial_notice
from app.notices.posts import ALERT_SECONDS, RESEND_SECONDS, post_of, signature_of
from app.notices.rule import Rule
from app.streams.log.incidents import MainFeature

KEY = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
WEBHOOK = Rule(target="webhook", url="https://a.host/hook", secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
CHAT = Rule(target="chat", url="https://a.host/hook")
ALERTS = Rule(target="alertmanager", url="http://a.host/prefix/", secret="token", label="critical", source="eu-1")
NOW = 1_800_000_600.0
INCIDENT = Told(
    id="web-1~31~1800000000123",
    stream="web-1",
    incident=31,
    state="open",
    begin=1_800_000_000.0,
    peak_severity=4.25,
    features=[MainFeature("cpu", 97.25, 12.0, 8.0), MainFeature("disk", None, 3.0, 1.0)],
    url="https://itan.example.org/?stream=web-1&incident=31",
)
BEGIN = "2027-01-15T08:00:00.000Z"
ENDED = msgspec.structs.replace(INCIDENT, state="closed", ended_at=1_800_000_300.0)
OPENED = notice_of("on-call", "incident.opened", INCIDENT)
CLOSED = notice_of("on-call", "incident.closed", ENDED)


def alert(rule, notice):
    post = post_of(rule, notice, NOW)
    (found,) = msgspec.json.decode(post.body)
    return found


def test_a_webhook_is_signed_as_standard_webhooks_are():
    post = post_of(WEBHOOK, OPENED, NOW)
    assert (post.headers["webhook-id"], post.headers["webhook-timestamp"]) == (OPENED.id, "1800000600")
    signed = b".".join([OPENED.id.encode(), b"1800000600", post.body])
    signature = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert post.headers["webhook-signature"] == f"v1,{signature}"
    said = msgspec.json.decode(post.body)
    assert (said["type"], said["timestamp"], said["data"]["incident"]) == ("incident.opened", BEGIN, 31)
    assert (said["data"]["id"], said["data"]["begin"]) == ("web-1~31~1800000000123", 1_800_000_000.0)
    assert said["data"]["features"][0] == {"name": "cpu", "value": 97.25, "expected": 12.0, "contribution": 8.0}


def test_a_notice_names_things_as_the_list_of_incidents_does():
    assert set(Told.__struct_fields__) < set(IncidentAnswer.__struct_fields__)


def test_the_signature_of_the_standards_example_comes_out():
    given = ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert signature_of(WEBHOOK.secret, *given) == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_later_try_has_the_same_id_and_body():
    first, second = post_of(WEBHOOK, OPENED, NOW), post_of(WEBHOOK, OPENED, NOW + 3600)
    assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]


def test_an_id_stands_for_one_rule_one_incident_and_one_event_of_it():
    ids = [notice_id("on-call", "incident.opened", "web-1~32~1800000000123")]
    ids += [notice_id(rule, kind, INCIDENT.id) for rule in ("on-call", "b") for kind in ("incident.opened", "test")]
    assert len(set(ids)) == 5
    # more is known of the incident by now: the same notice all the same
    more = msgspec.structs.replace(INCIDENT, peak_severity=9.0)
    assert notice_of("on-call", "incident.opened", more).id == OPENED.id == ids[1]


def test_a_chat_gets_a_text():
    post = post_of(CHAT, OPENED, NOW)
    assert msgspec.json.decode(post.body) == {
        "text": "Incident 31 of web-1 opened, severity 4.2\ncpu 97.25, expected 12\ndisk missing, expected 3\n"
        "https://itan.example.org/?stream=web-1&incident=31"
    }


def test_an_open_alert_ends_by_itself_unless_it_is_sent_again():
    found = alert(ALERTS, OPENED)
    assert found["labels"] == {
        "alertname": "ItanIncident",
        "stream": "web-1",
        "source": "eu-1",
        "severity": "critical",
    }
    assert (found["startsAt"], found["endsAt"]) == (BEGIN, "2027-01-15T08:14:00.000Z")
    assert ALERT_SECONDS >= 3 * RESEND_SECONDS
    assert found["annotations"]["description"] == "cpu 97.25, expected 12; disk missing, expected 3"
    assert found["generatorURL"] == found["annotations"]["url"] == INCIDENT.url
    post = post_of(ALERTS, OPENED, NOW)
    assert (post.url, post.headers["Authorization"]) == ("http://a.host/prefix/api/v2/alerts", "Bearer token")


@pytest.mark.parametrize(
    ("ended_at", "ends_at"),
    [
        (1_800_000_300.0, "2027-01-15T08:05:00.000Z"),
        (1_800_003_900.0, "2027-01-15T08:10:00.000Z"),  # a sample ahead of the clock
        (1_799_996_700.0, "2027-01-15T08:00:00.000Z"),  # a sample before the beginning
    ],
)
def test_a_closed_alert_has_ended(ended_at, ends_at):
    ended = msgspec.structs.replace(ENDED, ended_at=ended_at)
    found = alert(ALERTS, notice_of("on-call", "incident.closed", ended))
    assert (found["startsAt"], found["endsAt"]) == (BEGIN, ends_at)
    assert found["labels"] == alert(ALERTS, OPENED)["labels"]


@pytest.mark.parametrize("rule", [WEBHOOK, CHAT, ALERTS], ids=lambda rule: rule.target)
def test_secrets_stay_out_of_texts(rule):
    post = post_of(rule, trial_notice("on-call", "web-*", NOW), NOW)
    assert not any(secret in repr(post) for secret in ("hook", "token", "whsec"))
