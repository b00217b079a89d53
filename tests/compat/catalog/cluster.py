"""DescribeCluster."""

from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from tests.compat.catalog.case import Call, Case

CASES = [
    Case("valid request", (Call(DescribeClusterRequest()),)),
    Case("authorized operations", (Call(DescribeClusterRequest(include_cluster_authorized_operations=True)),)),
    Case("with fenced brokers", (Call(DescribeClusterRequest(include_fenced_brokers=True)),), versions=(2,)),
    Case("controller endpoints from a broker", (Call(DescribeClusterRequest(endpoint_type=2)),), versions=(1, 2)),
    Case("unknown endpoint type", (Call(DescribeClusterRequest(endpoint_type=3)),), versions=(1, 2)),
    Case("endpoint type 0", (Call(DescribeClusterRequest(endpoint_type=0)),), versions=(1, 2)),
]
