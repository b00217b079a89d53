"""The configs of a group and of a client-metrics subscription, as `definition.read_table` reads them."""

GROUP = """
consumer.session.timeout.ms        int      medium group   1..       45000
consumer.heartbeat.interval.ms     int      medium group   1..       5000
consumer.assignment.interval.ms    int      medium group   0..       1000
share.session.timeout.ms           int      medium group   1..       45000
share.heartbeat.interval.ms        int      medium group   1..       5000
share.record.lock.duration.ms      int      medium group   1000..    30000
share.delivery.count.limit         int      medium group   2..       5
share.partition.max.record.locks   int      medium group   100..     2000
share.auto.offset.reset            string   medium group   offset-reset latest
share.isolation.level              string   medium group   read_committed|read_uncommitted read_uncommitted
share.renew.acknowledge.enable     bool     medium group   *         true
share.assignment.interval.ms       int      medium group   0..       1000
streams.session.timeout.ms         int      medium group   1..       45000
streams.heartbeat.interval.ms      int      medium group   1..       5000
streams.num.standby.replicas       int      medium group   0..       0
streams.initial.rebalance.delay.ms int      medium group   0..       3000
streams.assignment.interval.ms     int      medium group   0..       1000
"""

CLIENT_METRICS = """
metrics     list     medium client  []        ""
interval.ms int      medium client  *         300000
match       list     medium client  []        ""
"""
