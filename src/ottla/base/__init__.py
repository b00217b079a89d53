"""Types that every other package shares: ids, error codes, decisions, the request context and the ports."""
