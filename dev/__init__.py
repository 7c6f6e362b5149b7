"""What a developer's machine needs: the local Kubernetes, the images, the demo. Never shipped."""
