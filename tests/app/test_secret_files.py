"""Settings from files: counted before variables, and never left out in silence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.secret_files import SecretsUnreadable, credentials
from app.settings import Settings
from app.storage.archive import open_archive

SECRET = "sixteen letters."
ITAN = [sys.executable, "-m", "app.cli"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    monkeypatch.setenv("ITAN_SECRETS_FOLDER", str(folder))
    return folder


def test_a_file_gives_a_setting_without_its_last_newline(folder: Path) -> None:
    (folder / "ITAN_WORKER_SECRET").write_text(f"{SECRET}\n")
    (folder / "itan_store").write_text("redis://:hunter2@redis/0\n")
    (folder / "grafana_password").write_text("of somebody else")
    settings = Settings()
    assert settings.worker_secret.get_secret_value() == SECRET
    assert settings.store == "redis://:hunter2@redis/0"
    assert settings.secrets_folder == str(folder)


def test_a_file_counts_before_a_variable_and_a_flag_before_both(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose sets variables that are empty where nobody set them: they must not open a service that has keys."""
    (folder / "ITAN_API_KEYS").write_text("sesame")
    (folder / "ITAN_PORT").write_text("8001")
    monkeypatch.setenv("ITAN_API_KEYS", "")
    assert Settings().api_keys.get_secret_value() == "sesame"
    assert Settings(port=8002).port == 8002


def make_missing(folder: Path) -> None:
    folder.rmdir()


def make_file(folder: Path) -> None:
    folder.rmdir()
    folder.write_text("sesame")


def make_outside(folder: Path) -> None:
    (folder.parent / "elsewhere").write_text("sesame")
    (folder / "ITAN_API_KEYS").symlink_to(folder.parent / "elsewhere")


def make_folder(folder: Path) -> None:
    (folder / "ITAN_API_KEYS").mkdir()


def make_binary(folder: Path) -> None:
    (folder / "ITAN_API_KEYS").write_bytes(b"sesame\xff")


@pytest.mark.parametrize("make", [make_missing, make_file, make_outside, make_folder, make_binary])
def test_what_cannot_be_read_is_refused(folder: Path, make) -> None:
    make(folder)
    with pytest.raises(SecretsUnreadable, match=r"^ITAN_SECRETS_FOLDER: ") as refused:
        Settings()
    assert "sesame" not in str(refused.value)


def test_secrets_of_kubernetes_are_links_within_their_folder(folder: Path) -> None:
    (folder / "..data").mkdir()
    (folder / "..data" / "ITAN_API_KEYS").write_text("sesame")
    (folder / "ITAN_API_KEYS").symlink_to("..data/ITAN_API_KEYS")
    assert Settings().api_keys.get_secret_value() == "sesame"


def test_credentials_of_the_archive_are_files_too(folder: Path) -> None:
    given = {"AWS_ACCESS_KEY_ID": "the key", "AWS_SECRET_ACCESS_KEY": "its secret"}
    for name, value in given.items():
        (folder / name).write_text(f"{value}\n")
    (folder / "AWS_NONSENSE").write_text("sesame")
    (folder / "ITAN_API_KEYS").write_text("sesame")
    with pytest.raises(ValueError, match="aws_nonsense") as refused:
        open_archive("s3://bucket/prefix", credentials(str(folder)))
    assert "sesame" not in str(refused.value)
    (folder / "AWS_NONSENSE").unlink()
    assert credentials(str(folder)) == given
    open_archive("s3://bucket/prefix", credentials(str(folder)))
    assert credentials("") == {}


def itan(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"ITAN_SECRETS_FOLDER": str(folder)}
    return subprocess.run([*ITAN, *words], env=environ, capture_output=True, text=True, timeout=60)


def test_serving_warns_of_a_misspelt_file_and_does_not_repeat_a_bad_one(folder: Path) -> None:
    (folder / "ITAN_API_KEY").write_text("sesame")
    (folder / "ITAN_STORE").write_text("ftp://:sesame@nowhere")
    done = itan(folder, "serve")
    assert done.returncode == 2
    assert "ITAN_API_KEY is not a setting" in done.stderr
    assert "sesame" not in done.stderr


def test_a_backup_finds_the_store_as_the_service_does(folder: Path) -> None:
    (folder / "ITAN_STORE").write_text("ftp://nowhere")
    assert "ftp" in itan(folder, "backup", str(folder / "one.backup")).stderr
    (folder / "ITAN_STORE").rename(folder / "ITAN_PORT")
    assert "ITAN_PORT" in itan(folder, "backup", str(folder / "one.backup")).stderr
