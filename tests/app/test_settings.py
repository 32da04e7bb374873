import pytest
from pydantic import ValidationError

from app.main import create_app
from app.settings import OpenBindRefused, SecretNeeded, Settings, is_loopback


def test_every_setting_says_in_one_line_what_it_is_for():
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert "\n" not in field.description, name


def test_settings_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("ITAN_MAX_BATCH_SAMPLES", "17")
    monkeypatch.setenv("ITAN_AUTO_CREATE", "false")
    settings = Settings()
    assert settings.max_batch_samples == 17
    assert not settings.auto_create


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", 70000),
        ("max_body_bytes", 0),
        ("snapshot_every_seconds", float("inf")),
        ("timestamp_allowance_seconds", -1),
        ("no_such_setting", 1),
    ],
)
def test_a_setting_out_of_range_is_refused(name, value):
    with pytest.raises(ValidationError, match=name):
        Settings(**{name: value})


def test_secrets_stay_out_of_repr_and_errors():
    settings = Settings(api_keys="sesame", store="redis://:hunter2@127.0.0.1/0")
    assert "sesame" not in repr(settings)
    assert "hunter2" not in repr(settings)
    with pytest.raises(ValidationError) as refused:
        Settings(api_keys=["sesame"], port="sesame")
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize("secret", ["", "fifteen letters"])
def test_no_worker_takes_records_without_a_secret(secret):
    with pytest.raises(SecretNeeded, match="at least 16 characters"):
        create_app(Settings(store="memory://", advertise_url="http://itan-2:8000", worker_secret=secret))
    settings = Settings(store="memory://", advertise_url="http://itan-2:8000", worker_secret="sixteen letters.")
    create_app(settings)
    assert "sixteen" not in repr(settings)


@pytest.mark.parametrize("address", ["itan-2:8000", "ftp://itan-2", "http://itan-2/path", "http://a b", "http://"])
def test_the_address_of_a_worker_has_a_scheme_and_a_host_alone(address):
    with pytest.raises(ValidationError, match="advertise_url"):
        Settings(advertise_url=address)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_a_loopback_address_needs_no_key(host):
    assert is_loopback(host)
    Settings(host=host).refuse_open_bind()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "localhost.example.org"])
def test_other_addresses_need_keys_or_a_word(host):
    with pytest.raises(OpenBindRefused, match="ITAN_API_KEYS"):
        create_app(Settings(host=host, store="memory://"))
    with pytest.raises(OpenBindRefused):
        create_app(Settings(host=host, store="memory://", api_keys="  "))
    create_app(Settings(host=host, store="memory://", api_keys="sesame"))
    create_app(Settings(host=host, store="memory://", allow_open=True))


def test_the_label_horizon_is_shorter_on_redis():
    assert Settings().horizon_samples == 1_000_000
    assert Settings(store="rediss://host").horizon_samples == 100_000
    assert Settings(store="unix:///run/redis.sock").horizon_samples == 100_000
    assert Settings(store="redis://host", label_horizon_samples=5).horizon_samples == 5
