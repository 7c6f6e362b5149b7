"""What a short pod does for the operator, with the job's own image and credentials.

`python -m sparkpoint.worker TASK …` does one task and gives one answer: see docs/worker.md. It
knows nothing of Kubernetes; every task may be killed and run again at any moment.
"""
