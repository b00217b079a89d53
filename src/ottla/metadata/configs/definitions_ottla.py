"""Ottla's own configs, with their descriptions. DescribeConfigs shows them only if they are set."""

OTTLA = """
# name                                    type     importance update allowed default internal
ottla.metrics.listener                    string   low    static  *         null  internal
ottla.slow.request.ms                     long     low    static  *         500   internal
ottla.auto.create.topics.max              int      low    static  0..       10000 internal
"""

TEXTS = """
ottla.metrics.listener Address of the Prometheus endpoint /metrics, as host:port; disabled by default.
ottla.slow.request.ms Slower requests and event-loop blocks are logged, at most one per second; -1 disables it.
ottla.auto.create.topics.max Topics are auto-created only while there are fewer; CreateTopics has no limit.
"""
