"""What the chart makes, for every combination of values: valid, consistent, restricted."""

import gzip
import re
from collections.abc import Iterator

import pytest

from dev.helm import CHART, lint_chart
from sparkpoint.controller.keys import JOB, ROLE
from sparkpoint.controller.objects.places import AGENT_PORT
from tests.unit.helm.combinations import COMBINATIONS, EVERYTHING, NAMESPACED
from tests.unit.helm.knowledge import unknown_fields
from tests.unit.helm.rendering import NAMESPACE, RELEASE, Object, Rendered, render

_CLUSTERWIDE = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
_TEXTS = re.compile(
    r"(^|/)(name|namespace|serviceAccountName|priorityClassName|image|interval)$|"
    r"/(labels|annotations|matchLabels|args|resourceNames|values|matchNames)/[^/]+$"
)
"""Paths of what the API server takes for a text."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@pytest.fixture(params=sorted(COMBINATIONS))
def chart(request: pytest.FixtureRequest) -> Rendered:
    return render(COMBINATIONS[request.param])


def test_helm_finds_nothing_wrong() -> None:
    lint_chart()


def test_every_object_is_of_a_kind_and_has_fields_that_kubernetes_knows(chart: Rendered) -> None:
    strange = {
        f"{body['kind']}/{body['metadata']['name']}": fields
        for body in (*chart.objects, *chart.hooks)
        if (fields := unknown_fields(body))
    }

    assert not strange


def test_every_object_has_a_name_its_labels_and_a_namespace_of_its_own(chart: Rendered) -> None:
    seen = set()
    for body in (*chart.objects, *chart.hooks):
        about, kind = body["metadata"], body["kind"]
        assert _NAME.fullmatch(about["name"]), about
        assert ("namespace" in about) is (kind not in _CLUSTERWIDE), about
        if kind != "CustomResourceDefinition":
            assert about["labels"]["app.kubernetes.io/instance"] == RELEASE
        seen.add((kind, about.get("namespace"), about["name"]))

    assert len(seen) == len(chart.objects) + len(chart.hooks)


@pytest.mark.parametrize(
    ("values", "release", "namespace"),
    [("numbers", "123", "456"), ("everything", "true", "1e3"), ("little", "007", "on")],
)
def test_names_that_look_like_numbers_stay_texts(values: str, release: str, namespace: str) -> None:
    chart = render(COMBINATIONS[values], release=release, namespace=namespace)

    wrong = [
        f"{body['kind']} {path}: {value!r}"
        for body in (*chart.objects, *chart.hooks)
        if body["kind"] != "CustomResourceDefinition"
        for path, value in _values(body)
        if _TEXTS.search(path) and not isinstance(value, str)
    ]

    assert not wrong


def test_every_pod_is_restricted(chart: Rendered) -> None:
    templates = [body["spec"]["template"] for body in chart.of("Deployment")]
    assert len(templates) == 1
    assert {hook["kind"] for hook in chart.hooks} == {"Pod"}

    for pod in (*templates, *chart.hooks):
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        assert not spec.get("volumes")
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_what_selects_the_operator_finds_its_pods(chart: Rendered) -> None:
    deployment = chart.one("Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    selectors = [
        deployment["spec"]["selector"]["matchLabels"],
        *(body["spec"]["selector"] for body in chart.of("Service")),
        *(body["spec"]["selector"]["matchLabels"] for body in chart.of("PodDisruptionBudget")),
        *(
            body["spec"]["podSelector"]["matchLabels"]
            for body in chart.of("NetworkPolicy")
            if body["metadata"]["namespace"] == NAMESPACE
        ),
    ]

    for selector in selectors:
        assert selector.items() <= labels.items()
    for monitor in chart.of("ServiceMonitor"):
        found = chart.one("Service")
        assert (
            monitor["spec"]["selector"]["matchLabels"].items()
            <= found["metadata"]["labels"].items()
        )
        assert monitor["spec"]["endpoints"][0]["port"] == found["spec"]["ports"][0]["name"]
        assert monitor["spec"]["endpoints"][0]["honorLabels"] is True


def test_every_binding_leads_from_an_account_to_a_role_that_is_there(chart: Rendered) -> None:
    roles = {
        (body["kind"], body["metadata"].get("namespace"), body["metadata"]["name"])
        for body in (*chart.of("Role"), *chart.of("ClusterRole"))
    }
    runs_as = chart.one("Deployment")["spec"]["template"]["spec"]["serviceAccountName"]

    for binding in (*chart.of("RoleBinding"), *chart.of("ClusterRoleBinding")):
        kind, space = binding["roleRef"]["kind"], binding["metadata"].get("namespace")
        assert (kind, space, binding["roleRef"]["name"]) in roles
        [subject] = binding["subjects"]
        operators = (runs_as, NAMESPACE)
        assert (subject["name"], subject["namespace"]) in (
            operators,
            ("spark", space),
            ("theirs", space),
            ("worker", "airflow"),
            ("007", space),
            ("007", "1e3"),
        )


def test_the_release_fits_into_its_secret(chart: Rendered) -> None:
    """Helm keeps chart and manifest in one Secret, which holds a mebibyte, as base64."""
    files = b"".join(file.read_bytes() for file in CHART.rglob("*") if file.is_file())

    assert len(gzip.compress(files + chart.manifest.encode())) * 4 / 3 < 500_000


def test_a_few_namespaces_are_served_without_any_right_beyond_them() -> None:
    chart = render({**EVERYTHING, **NAMESPACED})

    assert not chart.of("ClusterRole")
    assert not chart.of("ClusterRoleBinding")
    roles = [body["metadata"] for body in chart.of("Role")]
    served = {each["namespace"] for each in roles if each["name"] == "sparkpoint-operator"}
    assert served == {"shop", "lab"}
    assert {each["namespace"] for each in roles} == {"shop", "lab", NAMESPACE}
    assert {"--namespace=shop", "--namespace=lab"} <= set(_arguments(chart))


def test_one_operator_without_a_lease_follows_another_only_when_that_has_ended() -> None:
    alone, one_of_several = render(COMBINATIONS["little"]), render()

    assert alone.one("Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    assert "--lease-namespace=" in _arguments(alone)
    assert "strategy" not in one_of_several.one("Deployment")["spec"]
    assert "--lease-name=sparkpoint-operator" in _arguments(one_of_several)


def test_operators_are_spread_over_nodes_unless_it_is_said_where_they_run() -> None:
    def spread(**values: object) -> Object:
        spec = render(dict(values)).one("Deployment")["spec"]["template"]["spec"]
        return {key: spec[key] for key in ("affinity", "topologySpreadConstraints") if key in spec}

    deployment = render({"replicas": 2}).one("Deployment")["spec"]
    [constraint] = spread(replicas=2)["topologySpreadConstraints"]
    assert constraint["topologyKey"] == "kubernetes.io/hostname"
    assert constraint["whenUnsatisfiable"] == "ScheduleAnyway"
    assert constraint["labelSelector"] == deployment["selector"]
    assert spread() == {}
    affinity = {"nodeAffinity": {"x": 1}}
    assert spread(replicas=2, affinity=affinity) == {"affinity": affinity}


def test_the_lease_may_be_written_by_its_name_alone() -> None:
    chart = render({"fullnameOverride": "other"})

    rules = chart.one("Role", "other-operator-lease")["rules"]
    assert rules[0]["resourceNames"] == ["other-operator"]
    assert "--lease-name=other-operator" in _arguments(chart)


def test_what_jobs_run_as_outlives_the_operator() -> None:
    chart = render({**NAMESPACED, "jobs": {"namespaces": ["lab"]}})

    made = [b for b in chart.objects if b["metadata"].get("namespace") == "lab"]
    kept = {b["kind"] for b in made if b["metadata"]["name"] in ("spark", "sparkpoint-driver")}
    assert kept == {"ServiceAccount", "Role", "RoleBinding"}
    for body in made:
        policy = (body["metadata"].get("annotations") or {}).get("helm.sh/resource-policy")
        assert (policy == "keep") is (body["metadata"]["name"] != "sparkpoint-operator")


def test_accounts_of_jobs_are_made_where_jobs_are_served_unless_said_otherwise() -> None:
    accounts = render(NAMESPACED).of("ServiceAccount")

    spaces = {(each["metadata"]["name"], each["metadata"]["namespace"]) for each in accounts}
    assert spaces == {("spark", "shop"), ("spark", "lab"), ("sparkpoint-operator", NAMESPACE)}


def test_the_agents_answer_the_operator_and_monitoring_alone() -> None:
    chart = render(EVERYTHING)

    policy = chart.one("NetworkPolicy", "sparkpoint-drivers")["spec"]
    assert policy["podSelector"] == {"matchLabels": {ROLE: "driver"}}
    agent, executors, extra = policy["ingress"]
    assert agent["ports"] == [{"port": AGENT_PORT}]
    operator, *monitoring = agent["from"]
    assert operator["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": NAMESPACE
    }
    assert monitoring == EVERYTHING["networkPolicy"]["monitoring"]
    assert executors["from"][0]["podSelector"]["matchExpressions"][0]["key"] == JOB
    assert not any(_covers(port, AGENT_PORT) for port in executors["ports"])
    assert all(any(_covers(port, each) for port in executors["ports"]) for each in (1, 7078, 65535))
    assert extra == {"ports": [{"port": 4040}]}


def test_the_operator_reaches_dns_the_api_server_and_agents_and_nothing_else() -> None:
    cluster, namespaced = render(EVERYTHING), render({**EVERYTHING, **NAMESPACED})

    policy = cluster.one("NetworkPolicy", "sparkpoint-operator")["spec"]
    names, server, agents = policy["egress"]
    assert {port["port"] for port in names["ports"]} == {53}
    assert server["to"] == [{"ipBlock": {"cidr": "10.0.0.1/32"}}]
    assert agents["ports"] == [{"port": AGENT_PORT}]
    assert agents["to"][0]["namespaceSelector"] == {}
    [ingress] = policy["ingress"]
    assert ingress["ports"] == [{"port": 8080}]
    *monitoring, tests = ingress["from"]
    assert monitoring == EVERYTHING["networkPolicy"]["monitoring"]
    assert tests["podSelector"]["matchLabels"].items() <= _labels(cluster.hook("test")).items()
    named = namespaced.one("NetworkPolicy", "sparkpoint-operator")["spec"]["egress"][2]["to"][0]
    assert named["namespaceSelector"]["matchExpressions"][0]["values"] == ["shop", "lab"]


def test_nobody_reads_metrics_unless_it_is_said_who_may() -> None:
    chart = render({"networkPolicy": {"enabled": True}, "jobs": {"namespaces": ["shop"]}})

    operator = chart.one("NetworkPolicy", "sparkpoint-operator")["spec"]["ingress"]
    drivers = chart.one("NetworkPolicy", "sparkpoint-drivers")["spec"]["ingress"]
    assert [len(rule["from"]) for rule in (operator[0], drivers[0])] == [1, 1]


def test_drivers_are_scraped_where_they_are_served() -> None:
    anywhere = render(EVERYTHING).one("PodMonitor")["spec"]
    listed = render({**EVERYTHING, **NAMESPACED}).one("PodMonitor")["spec"]

    assert anywhere["namespaceSelector"] == {"any": True}
    assert listed["namespaceSelector"] == {"matchNames": ["shop", "lab"]}
    assert anywhere["selector"]["matchLabels"] == {ROLE: "driver"}
    assert anywhere["podTargetLabels"] == [JOB]


def test_the_image_is_named_by_tag_or_by_digest() -> None:
    images = [
        _container(render(values))["image"]
        for values in ({}, {"image": {"repository": "r/o", "tag": "t"}}, EVERYTHING)
    ]

    assert images == [
        "sparkpoint.dev/operator:0.1.0",
        "r/o:t",
        f"sparkpoint.dev/operator@sha256:{'0' * 64}",
    ]


def _values(body: object, path: str = "") -> Iterator[tuple[str, object]]:
    """All that is no mapping and no list, by its path."""
    match body:
        case dict():
            for key, inner in body.items():
                # Of a key, too: `on: x` is no label `on`.
                yield from [] if isinstance(key, str) else [(f"{path}/name", key)]
                yield from _values(inner, f"{path}/{key}")
        case list():
            for inner in body:
                yield from _values(inner, f"{path}/-")
        case _:
            yield path, body


def _container(chart: Rendered) -> Object:
    [container] = chart.one("Deployment")["spec"]["template"]["spec"]["containers"]
    found: Object = container
    return found


def _arguments(chart: Rendered) -> list[str]:
    arguments: list[str] = _container(chart)["args"]
    return arguments


def _labels(body: Object) -> dict[str, str]:
    labels: dict[str, str] = body["metadata"]["labels"]
    return labels


def _covers(port: Object, number: int) -> bool:
    first: int = port["port"]
    last: int = port.get("endPort", first)
    return first <= number <= last
