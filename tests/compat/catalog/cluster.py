"""DescribeCluster."""

from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from tests.compat.catalog.case import Call, Case

CASES = [
    Case("plain", (Call(DescribeClusterRequest()),)),
    Case("what may be done", (Call(DescribeClusterRequest(include_cluster_authorized_operations=True)),)),
    Case("with fenced brokers", (Call(DescribeClusterRequest(include_fenced_brokers=True)),), versions=(2,)),
    Case("the controllers, of a broker", (Call(DescribeClusterRequest(endpoint_type=2)),), versions=(1, 2)),
    Case("an unknown type of endpoint", (Call(DescribeClusterRequest(endpoint_type=3)),), versions=(1, 2)),
    Case("no type of endpoint", (Call(DescribeClusterRequest(endpoint_type=0)),), versions=(1, 2)),
]
