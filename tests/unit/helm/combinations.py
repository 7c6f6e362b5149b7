"""Sets of values that differ in what they make."""

from tests.unit.helm.rendering import Object

__all__ = ["COMBINATIONS", "EVERYTHING", "NAMESPACED", "NUMBERS"]

_WATCHED: Object = {"scope": "Namespaces", "namespaces": ["shop", "lab"]}
NAMESPACED: Object = {"watch": _WATCHED}
_ON: Object = {"enabled": True, "labels": {"release": "prometheus"}}
_PROMETHEUS: Object = {"namespaceSelector": {"matchLabels": {"team": "watch"}}}
EVERYTHING: Object = {
    "image": {"digest": f"sha256:{'0' * 64}"},
    "imagePullSecrets": [{"name": "registry"}],
    "replicas": 3,
    "jobs": {
        "namespaces": ["shop"],
        "serviceAccount": {"annotations": {"cloud.example/role": "streams"}},
    },
    "serviceAccount": {"annotations": {"cloud.example/role": "operator"}},
    "log": {"format": "console", "verbose": True},
    "extraArgs": ["--verbose"],
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "monitoring": {
        "serviceMonitor": _ON,
        "podMonitor": _ON,
        "rules": {**_ON, "savepointMaxAgeSeconds": 86400},
        "dashboard": {"enabled": True, "annotations": {"grafana_folder": "Spark"}},
    },
    "airflow": {
        "enabled": True,
        "serviceAccounts": [{"namespace": "airflow", "name": "worker"}],
        "configMap": {"enabled": True, "namespace": "airflow"},
    },
    "networkPolicy": {
        "enabled": True,
        "monitoring": [_PROMETHEUS],
        "apiServer": {"cidrs": ["10.0.0.1/32"]},
        "drivers": {"extraIngress": [{"ports": [{"port": 4040}]}]},
    },
    "podDisruptionBudget": {"enabled": True, "minAvailable": 2},
    "podAnnotations": {"example.com/team": "streams"},
    "podLabels": {"team": "streams"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "infra", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
        }
    ],
    "priorityClassName": "system-cluster-critical",
}
_LAKES = ["1e3", "456", "007", "0x1f"]
NUMBERS: Object = {
    **EVERYTHING,
    "nameOverride": "on",
    "image": {"repository": "42", "tag": "43"},
    "watch": {"scope": "Namespaces", "namespaces": _LAKES},
    "jobs": {"namespaces": _LAKES, "serviceAccount": {"name": "007"}},
    "serviceAccount": {"name": "1e3"},
    "monitoring": {
        **EVERYTHING["monitoring"],
        "dashboard": {"enabled": True, "namespace": "456"},
    },
    "airflow": {
        "enabled": True,
        "namespaces": ["456"],
        "serviceAccounts": [{"namespace": "1e3", "name": "007"}],
        "configMap": {"enabled": True, "namespace": "456"},
    },
    "podLabels": {"team": "7"},
    "podAnnotations": {"example.com/team": "1e3"},
    "priorityClassName": "007",
}
"""Names that a reader of YAML takes for numbers and booleans."""
COMBINATIONS: dict[str, Object] = {
    "defaults": {},
    "aggregated": {"rbac": {"aggregate": True}},
    "everything": EVERYTHING,
    "namespaces": NAMESPACED,
    "numbers": NUMBERS,
    "namespaces-everything": {**EVERYTHING, **NAMESPACED},
    "little": {
        "crds": {"install": False},
        "serviceAccount": {"create": False, "name": "mine"},
        "rbac": {"create": False},
        "jobs": {"namespaces": ["shop"], "serviceAccount": {"create": False, "name": "theirs"}},
        "leaderElection": {"enabled": False},
        "uninstallNotice": {"enabled": False},
        "metrics": {"enabled": False},
        "networkPolicy": {"enabled": True, "drivers": {"enabled": False}},
        "fullnameOverride": "other",
    },
}
