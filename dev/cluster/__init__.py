"""A real Kubernetes on one Linux machine, without Docker: `python -m dev.cluster up`.

The whole node (etcd, API server, kubelet, containerd, every pod) lives in its own mount, network
and PID namespaces under one init process. So clusters stand side by side by name without sharing a
port or an iptables chain, and when the init process dies the kernel removes all of it: no process,
mount, link or chain can stay behind, whatever the moment of the crash.
"""
