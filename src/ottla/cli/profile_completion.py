"""Completion of profile names."""

from ottla.cli.client_configs import profile_names


def profile_completion(incomplete: str) -> list[str]:
    return [name for name in profile_names() if name.startswith(incomplete)]
