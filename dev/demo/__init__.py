"""The demo: the product on a cluster, told step by step, each step checked."""
