"""deploy/kubernetes: every overlay is built and valid, and its objects fit together."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.build import installed_version
from app.settings import Settings
from tests.deploy import dockerfile
from tests.deploy.compose import ROOT, read_services
from tests.deploy.kubernetes import (
    FLEETS,
    FOLDER,
    OVERLAYS,
    REFERENCE,
    Object,
    build,
    container,
    environment,
    kustomize,
    mebibytes,
    named,
    objects,
    of_kind,
    pod,
    ports,
    secrets,
    selected,
    workloads,
)
from tests.deploy.prometheus import rules

GUIDE = ROOT / "docs" / "kubernetes.md"
VERSION = "1.37.0"
CONNECTIONS_MB, PYTHON_MB = 300, 200
STEPS = dockerfile.read_dockerfile(ROOT / "Dockerfile")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_each_overlay_is_valid(overlay: str) -> None:
    known = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    for one in build(overlay):
        known.validate(one, VERSION, strict=True)
    with pytest.raises(known.ValidationError, match="misspelt"):
        known.validate(one | {"misspelt": {}}, VERSION, strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_each_selector_finds_the_pods_of_one_workload(overlay: str) -> None:
    made = build(overlay)
    found = [one["spec"]["selector"] for one in of_kind(made, "Service")]
    found += [one["spec"]["selector"]["matchLabels"] for one in of_kind(made, "PodDisruptionBudget")]
    found += [one["spec"]["podSelector"]["matchLabels"] for one in of_kind(made, "NetworkPolicy")]
    for workload in workloads(made):
        spread = pod(workload).get("topologySpreadConstraints", [])
        own = [workload["spec"]["selector"], *(one["labelSelector"] for one in spread)]
        assert all(selected(made, one["matchLabels"]) == [workload] for one in own)
        found.append(workload["spec"]["selector"]["matchLabels"])
    assert len(found) > len(workloads(made))
    assert all(len(selected(made, labels)) == 1 for labels in found), found


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_ports_are_those_of_the_pods_that_are_meant(overlay: str) -> None:
    made = build(overlay)
    for service in of_kind(made, "Service"):
        (workload,) = selected(made, service["spec"]["selector"])
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports(workload)
    for policy in of_kind(made, "NetworkPolicy"):
        (workload,) = selected(made, policy["spec"]["podSelector"]["matchLabels"])
        let_in = [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]]
        assert set(let_in) == ports(workload)
    for workload in workloads(made):
        only = container(workload)
        probed = [only[name] for name in ("startupProbe", "livenessProbe", "readinessProbe") if name in only]
        named_ports = {(one.get("httpGet") or one.get("tcpSocket") or {}).get("port") for one in probed}
        assert named_ports - {None} <= ports(workload)
        annotated = workload["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"]
        offered = {port["containerPort"]: port["name"] for one in pod(workload)["containers"] for port in one["ports"]}
        # the same port as for the Prometheus Operator
        assert offered[int(annotated)] == ("metrics" if "metrics" in offered.values() else "http")


@pytest.mark.parametrize("overlay", FLEETS)
def test_policies_let_through_what_has_to_pass(overlay: str) -> None:
    made = build(overlay)
    workers, proxies = named(made, "StatefulSet", "itan"), named(made, "Deployment", "itan-haproxy")
    assert allowed(made, "itan") == [proxies, workers]
    (way_out, *_) = named(made, "NetworkPolicy", "itan-haproxy")["spec"]["egress"]
    assert [selected(made, peer["podSelector"]["matchLabels"]) for peer in way_out["to"]] == [[workers]]
    if overlay == "redis":
        assert allowed(made, "itan-redis") == [workers]


def allowed(made: list[Object], policy: str) -> list[Object]:
    """Give the workloads of this namespace that a policy lets in."""
    peers = [peer for rule in named(made, "NetworkPolicy", policy)["spec"]["ingress"] for peer in rule["from"]]
    return [one for peer in peers for one in selected(made, peer["podSelector"]["matchLabels"])]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_a_pod_mounts_is_there(overlay: str) -> None:
    made = build(overlay)
    for workload in workloads(made):
        volumes = pod(workload).get("volumes", []) + [
            {"name": claim["metadata"]["name"]} for claim in workload["spec"].get("volumeClaimTemplates", [])
        ]
        assert {mount["name"] for mount in container(workload)["volumeMounts"]} == {one["name"] for one in volumes}
        for volume in volumes:
            assert "configMap" not in volume or named(made, "ConfigMap", volume["configMap"]["name"])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_no_secret_is_kept_here_and_the_guide_makes_those_that_are_needed(overlay: str) -> None:
    made = build(overlay)
    assert not of_kind(made, "Secret")
    section = GUIDE.read_text().split(f"\n## `{overlay}`", 1)[1].split("\n## ", 1)[0]
    told = {("itan-keys", "")} if "create secret generic itan-keys --from-file=keys" in section else set()
    for words in re.findall(r"create secret generic itan ((?:\\\n|.)+)", section):
        told |= {("itan", entry) for entry in re.findall(r"--from-literal=([\w-]+)=", words)}
    assert set(secrets(made)) == told
    assert f"apply -n itan -k deploy/kubernetes/overlays/{overlay}" in section


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_have_no_rights(overlay: str) -> None:
    for workload in workloads(build(overlay)):
        whole = pod(workload)["securityContext"]
        assert whole["runAsNonRoot"] is True
        assert whole["runAsUser"] > 0
        assert whole["seccompProfile"] == {"type": "RuntimeDefault"}
        for one in pod(workload)["containers"]:
            assert one["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
        assert pod(workload)["automountServiceAccountToken"] is False
        # they set ITAN_PORT=tcp://... for a service named itan
        assert pod(workload)["enableServiceLinks"] is False
    (user,) = {step.text for step in STEPS if step.verb == "USER"}
    workers = pod(named(build(overlay), "StatefulSet", "itan"))["securityContext"]
    assert user == f"{workers['runAsUser']}:{workers['runAsGroup']}"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_workers_fit_their_limits(overlay: str) -> None:
    made = build(overlay)
    workers = named(made, "StatefulSet", "itan")
    settings = read_settings(environment(made, workers))
    needed = settings.memory_budget_mb + settings.body_budget_mb + CONNECTIONS_MB + PYTHON_MB
    assert needed < 0.9 * mebibytes(container(workers)["resources"]["limits"]["memory"])
    assert pod(workers)["terminationGracePeriodSeconds"] >= settings.drain_seconds + settings.shutdown_seconds + 10
    probe = container(workers)["readinessProbe"]
    assert settings.drain_seconds > probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"]


def read_settings(environ: dict[str, str]) -> Settings:
    """Read the settings; a name that the service does not know is refused."""
    given = {name: value for name, value in environ.items() if name.startswith("ITAN_")}
    assert {name.removeprefix("ITAN_").lower() for name in given} <= set(Settings.model_fields)
    assert not [value for value in given.values() if REFERENCE.search(value)]
    return Settings(**{name.removeprefix("ITAN_").lower(): value for name, value in given.items()})


@pytest.mark.parametrize("overlay", FLEETS)
def test_each_worker_has_the_name_of_its_pod_and_is_reached_by_it(overlay: str) -> None:
    made = build(overlay)
    workers = named(made, "StatefulSet", "itan")
    settings = read_settings(environment(made, workers))
    headless = named(made, "Service", workers["spec"]["serviceName"])
    assert headless["spec"]["clusterIP"] == "None"
    # a worker that is stopping keeps its name
    assert headless["spec"]["publishNotReadyAddresses"] is True
    assert selected(made, headless["spec"]["selector"]) == [workers]
    assert settings.worker == "itan-1"
    assert settings.advertise_url == f"http://itan-1.{headless['metadata']['name']}:{settings.port}"
    assert {port["containerPort"] for port in container(workers)["ports"]} == {settings.port}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_clients_come_in_by_the_proxy_if_there_are_several_workers(overlay: str) -> None:
    made = build(overlay)
    (entry,) = selected(made, named(made, "Service", "itan")["spec"]["selector"])
    assert entry["metadata"]["name"] == ("itan-haproxy" if overlay in FLEETS else "itan")


def test_workers_are_scaled_slowly_and_not_beyond_what_the_proxy_knows() -> None:
    made = build("managed-redis")
    (scaler,) = of_kind(made, "HorizontalPodAutoscaler")
    aim = scaler["spec"]["scaleTargetRef"]
    workers = named(made, aim["kind"], aim["name"])
    # `kubectl apply` leaves the number to the autoscaler
    assert "replicas" not in workers["spec"]
    assert "cpu" in container(workers)["resources"]["requests"]
    (config,) = (one["data"] for one in of_kind(made, "ConfigMap") if "workers.cfg" in one["data"])
    servers = re.findall(r'^    server (\S+) "(\S+)\.\$\{ITAN_WORKERS\}"$', config["workers.cfg"], re.MULTILINE)
    assert servers == [(f"itan-{number}",) * 2 for number in range(scaler["spec"]["maxReplicas"])]
    assert scaler["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] >= 1800


def test_images_are_those_of_compose() -> None:
    images = {one["image"] for workload in workloads(build("redis")) for one in pod(workload)["containers"]}
    composed = {service["image"] for service in read_services().values()}
    assert images - composed == {f"itan:{installed_version()}"}
    assert len(images) == 4


def test_its_redis_is_told_what_keeps_state_safe() -> None:
    store = named(build("redis"), "StatefulSet", "itan-redis")
    (_, *ours), (_, *composed) = container(store)["args"], read_services()["redis"]["command"]
    told, same = (dict(zip(words[::2], words[1::2], strict=True)) for words in (ours, composed))
    most = told.pop("--maxmemory")
    assert mebibytes(most) <= mebibytes(container(store)["resources"]["limits"]["memory"]) / 2
    del same["--maxmemory"]
    assert told == same | {"--dir": "/data", "--requirepass": "$(REDISCLI_AUTH)"}
    assert {mount["mountPath"] for mount in container(store)["volumeMounts"]} == {"/data"}


def test_the_operator_finds_what_alerts_and_dashboards_ask_for(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    base, component = (
        os.path.relpath(FOLDER / name, folder) for name in ("overlays/redis", "components/prometheus-operator")
    )
    (folder / "kustomization.yaml").write_text(f"resources: [{base}]\ncomponents: [{component}]\n")
    made = objects(kustomize(folder))
    (monitor,) = of_kind(made, "ServiceMonitor")
    labels = monitor["spec"]["selector"]["matchLabels"]
    (service,) = (
        one for one in of_kind(made, "Service") if labels.items() <= one["metadata"].get("labels", {}).items()
    )
    assert [one["port"] for one in monitor["spec"]["endpoints"]] == [port["name"] for port in service["spec"]["ports"]]
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "itan"
    (monitor,) = of_kind(made, "PodMonitor")
    asked = {one["key"]: one["values"] for one in monitor["spec"]["selector"]["matchExpressions"]}
    pods = {one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"] for one in workloads(made)}
    found = {name for name, has in pods.items() if all(has[key] in values for key, values in asked.items())}
    assert found == {"itan-haproxy", "itan-redis"}
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert all(endpoint["port"] in ports(one) for one in workloads(made) if one["metadata"]["name"] in found)
    jobs = {"itan", *(pods[name][monitor["spec"]["jobLabel"]] for name in found)}
    assert jobs == set(re.findall(r'job="(\w+)"', " ".join(rule["expr"] for rule in rules())))


def test_the_rules_are_printed_for_the_operator() -> None:
    done = subprocess.run([sys.executable, FOLDER / "prometheus_rules.py"], capture_output=True, text=True, check=True)
    made = objects(done.stdout)
    assert {one["kind"] for one in made} == {"PrometheusRule"}
    assert len({one["metadata"]["name"] for one in made}) == len(made)
    printed = [rule for one in made for group in one["spec"]["groups"] for rule in group["rules"]]
    assert sorted(printed, key=json.dumps) == sorted(rules(), key=json.dumps)
