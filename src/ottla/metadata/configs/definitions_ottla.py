"""Configs that Kafka does not have: ours, under a prefix of their own. DescribeConfigs shows them where they are set."""

OTTLA = """
# name                                    type     importance update allowed default internal
ottla.metrics.listener                    string   low    static  *         null  internal
ottla.slow.request.ms                     long     low    static  *         500   internal
ottla.auto.create.topics.max              int      low    static  0..       10000 internal
"""

TEXTS = """
ottla.metrics.listener Where metrics are served over HTTP at /metrics in Prometheus' text form, as host:port; nowhere unless it is set.
ottla.slow.request.ms A request that takes longer than this, or an event loop that is held up for so long, is logged, once in a second at most; -1 never does.
ottla.auto.create.topics.max Topics are created by being asked for only while there are fewer than this; CreateTopics has no such limit.
"""  # noqa: E501
