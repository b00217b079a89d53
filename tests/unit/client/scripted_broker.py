"""Scripted brokers in the simulated network: leaders move, and brokers throttle, stop responding or are old."""

from ottla.sim.world import World
from ottla.wire.batches import decode_records, read_header
from ottla.wire.framing import FrameReader, ReceiveBufferPool
from ottla.wire.headers import read_request_header, skip_tags
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.schema import decode, encode

TOPIC_ID = b"t" * 16
REQUESTS = {
    request.API_KEY: request for request in (ApiVersionsRequest, InitProducerIdRequest, MetadataRequest, ProduceRequest)
}


class ScriptedCluster:
    """Brokers 1 and 2 at ports 9001 and 9002. Topic `t` has one partition with leader `leader`."""

    def __init__(self, world: World, **versions):
        self.world = world
        self.leader, self.epoch = 1, 0
        self.topic_error = 0
        self.gives_hints = True
        self.is_unresponsive = False
        self.throttle_ms = 0
        self.produce_errors = []
        """Error codes for the next Produce requests."""
        self.produce_max = versions.get("produce_max", 13)
        self.api_versions_max = versions.get("api_versions_max", 4)
        self.requests = []
        """Broker, name and version of each request."""
        self.open_count = 0
        self.connections = []
        self.values = []
        self.batches = []

    async def start(self):
        for node in (1, 2):
            ports = self.world.start(f"broker-{node}")
            await ports.network.listen("", 9000 + node, lambda node=node: ScriptedConnection(self, node))

    def names(self):
        return [name for _, name, _ in self.requests]

    def respond(self, node, request, version):
        match request:
            case ApiVersionsRequest() if version > self.api_versions_max:
                return ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(18, 0, self.api_versions_max)]), 0
            case ApiVersionsRequest():
                ranges = {key: (each.MIN_VERSION, each.MAX_VERSION) for key, each in REQUESTS.items()}
                ranges[0] = (3, self.produce_max)
                return ApiVersionsResponse(api_keys=[ApiVersion(key, *each) for key, each in ranges.items()]), version
            case InitProducerIdRequest():
                return InitProducerIdResponse(producer_id=77, producer_epoch=0), version
            case MetadataRequest():
                return self.metadata(request), version
            case ProduceRequest():
                return self.produce(node, request, version), version

    def metadata(self, request):
        brokers = [MetadataResponseBroker(node, "cluster", 9000 + node) for node in (1, 2)]
        partitions = [MetadataResponsePartition(0, 0, self.leader, self.epoch, [1, 2], [1, 2])]
        topics = [
            MetadataResponseTopic(self.topic_error, topic.name, TOPIC_ID, False, [] if self.topic_error else partitions)
            for topic in request.topics or ()
        ]
        return MetadataResponse(brokers=brokers, cluster_id="scripted", controller_id=1, topics=topics)

    def produce(self, node, request, version):
        ((topic, data),) = [(topic, data) for topic in request.topic_data for data in topic.partition_data]
        result = PartitionProduceResponse(index=data.index)
        endpoints = []
        if node != self.leader:
            result.error_code = 6
            if self.gives_hints:
                result.current_leader = LeaderIdAndEpoch(self.leader, self.epoch)
                endpoints = [NodeEndpoint(self.leader, "cluster", 9000 + self.leader)]
        elif self.produce_errors:
            result.error_code = self.produce_errors.pop(0)
        else:
            result.base_offset = len(self.values)
            self.values += [record.value for record in decode_records(data.records)]
            self.batches.append(read_header(data.records))
        topics = [TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[result])]
        return ProduceResponse(responses=topics, throttle_time_ms=self.throttle_ms, node_endpoints=endpoints)


class ScriptedConnection:
    """An accepted connection."""

    def __init__(self, cluster, node):
        self.cluster = cluster
        self.node = node
        self.reader = FrameReader(ReceiveBufferPool(), 100 << 20, self.on_frame)
        self.get_buffer = self.reader.get_buffer
        self.buffer_updated = self.reader.received

    def connection_made(self, connection):
        self.connection = connection
        self.cluster.connections.append(connection)
        self.cluster.open_count += 1

    def connection_lost(self, error):
        self.reader.release()
        self.cluster.open_count -= 1

    def pause_writing(self):
        """Responses are small."""

    resume_writing = pause_writing

    def on_frame(self, buffer, view, start, end):
        key, version, correlation_id, _, position = read_request_header(buffer, start, end)
        kind = REQUESTS[key]
        cluster = self.cluster
        cluster.requests.append((self.node, kind.__name__.removesuffix("Request"), version))
        if cluster.is_unresponsive:
            return True
        if key == 18 and version > cluster.api_versions_max:
            request = ApiVersionsRequest()  # an old broker does not decode a newer version
        else:
            if version >= kind.FLEXIBLE_FROM:
                position = skip_tags(buffer, position, end)
            request, _ = decode(kind, version, bytes(view[position:end]))
        response, response_version = cluster.respond(self.node, request, version)
        if isinstance(request, ProduceRequest) and request.acks == 0:
            return True
        has_tags = key != 18 and version >= type(response).FLEXIBLE_FROM
        data = correlation_id.to_bytes(4, "big") + (b"\0" if has_tags else b"") + encode(response, response_version)
        self.connection.write([len(data).to_bytes(4, "big") + data])
        return True


def run(scenario, **versions):
    """Run `scenario(cluster, ports)` in its own world."""

    async def main(world):
        cluster = ScriptedCluster(world, **versions)
        await cluster.start()
        ports = world.start("client")
        return await world.within(ports, scenario(cluster, ports))

    with World(1) as world:
        return world.run(main(world))


__all__ = ["ScriptedCluster", "run"]
