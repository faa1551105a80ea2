"""Configuration files of RocketMQ, Docker and Kubernetes as scenarios: text in, values and text out.

May import `base` and `spec`.
"""
