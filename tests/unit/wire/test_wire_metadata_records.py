"""Records of the metadata log, control records and the quorum state file; the bytes are those of an Apache Kafka 4.3
node."""

import pytest

from ottla.base.ids import Uuid
from ottla.wire.errors import MalformedMessage
from ottla.wire.records.control import KRaftVersionRecord, LeaderChangeMessage, Voter, VotersRecord
from ottla.wire.records.framing import UnknownRecord, decode_metadata_record, encode_metadata_record
from ottla.wire.records.metadata import (
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from ottla.wire.records.quorum import QuorumStateData, read_quorum_state, write_quorum_state
from ottla.wire.records.quorum import Voter as QuorumVoter
from ottla.wire.schema import Message, decode, encode

TOPIC = Uuid(bytes.fromhex("52feee2aab51402680b116b972d88539"))
DIRECTORY = Uuid(bytes.fromhex("980c3f35baf55d0e469ba18c2050acbb"))


@pytest.mark.parametrize(
    ("record", "version", "text"),
    [
        (BeginTransactionRecord("Bootstrap records"), 0, "01170001001212426f6f747374726170207265636f726473"),
        (FeatureLevelRecord("metadata.version", 30), 0, "010c00116d657461646174612e76657273696f6e001e00"),
        (
            ConfigRecord(4, "", "min.insync.replicas", "1"),
            0,
            "0104000401146d696e2e696e73796e632e7265706c69636173023100",
        ),
        (EndTransactionRecord(), 0, "01180000"),
        (NoOpRecord(), 0, "01140000"),
        (BrokerRegistrationChangeRecord(1, 11, fenced=-1), 0, "01110000000001000000000000000b010001ff"),
        (BrokerRegistrationChangeRecord(1, 11, cordoned_log_dirs=[]), 3, "01110300000001000000000000000b01030101"),
        (BrokerRegistrationChangeRecord(1, 11, in_controlled_shutdown=1), 1, "01110100000001000000000000000b01010101"),
        (TopicRecord("a", TOPIC), 0, "010200026152feee2aab51402680b116b972d8853900"),
        (
            PartitionRecord(0, TOPIC, [1], [1], [], [], 1, 0, 0, 0, [DIRECTORY]),
            2,
            "0103020000000052feee2aab51402680b116b972d88539020000000102000000010101000000010000000000000000"
            "02980c3f35baf55d0e469ba18c2050acbb00",
        ),
        (
            PartitionChangeRecord(0, TOPIC, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]),
            2,
            "0105020000000052feee2aab51402680b116b972d88539040001010104ffffffff0605020000000107050200000001",
        ),
        (  # the schema has tag 8 before tag 6; on the wire tags are sorted
            PartitionChangeRecord(0, TOPIC, directories=[DIRECTORY], eligible_leader_replicas=[2]),
            2,
            "0105020000000052feee2aab51402680b116b972d885390206050200000002081102980c3f35baf55d0e469ba18c2050acbb",
        ),
        (RemoveTopicRecord(TOPIC), 0, "01090052feee2aab51402680b116b972d8853900"),
        (ClearElrRecord("h3cp"), 0, "011c00056833637000"),
        (ProducerIdsRecord(1, 11, 1000), 0, "010f0000000001000000000000000b00000000000003e800"),
    ],
)
def test_metadata_records_are_encoded_and_decoded(record: Message, version: int, text: str) -> None:
    assert encode_metadata_record(record, version).hex() == text
    assert decode_metadata_record(bytes.fromhex(text)) == record
    assert decode_metadata_record(memoryview(bytes.fromhex(text))) == record


@pytest.mark.parametrize(
    ("key", "version", "text"),
    [(99, 0, "0163000102"), (2, 1, "01020161"), (300, 5, "01ac0205")],
)
def test_unknown_metadata_record_is_passed_through(key: int, version: int, text: str) -> None:
    """Records of a newer Kafka are encoded to their original bytes."""
    record = decode_metadata_record(bytes.fromhex(text))
    assert isinstance(record, UnknownRecord)
    assert (record.api_key, record.version) == (key, version)
    assert encode_metadata_record(record, 0).hex() == text


@pytest.mark.parametrize(
    "text", ["", "01", "0102", "00020000", "020200026100", "010200", "0114000000", "01ffffffffff01"]
)
def test_invalid_metadata_record_is_malformed(text: str) -> None:
    """Empty, another frame version, a truncated body, extra bytes."""
    with pytest.raises(MalformedMessage):
        decode_metadata_record(bytes.fromhex(text))


@pytest.mark.parametrize(
    ("record", "version", "text"),
    [
        (LeaderChangeMessage(0, 1, [Voter(1)], [Voter(1)]), 0, "00000000000102000000010002000000010000"),
        (KRaftVersionRecord(0, 1), 0, "0000000100"),
    ],
)
def test_control_records_are_encoded_and_decoded(record: Message, version: int, text: str) -> None:
    assert encode(record, version).hex() == text
    assert decode(type(record), version, bytes.fromhex(text)) == (record, len(text) // 2)


def test_voters_record_is_encoded_and_decoded() -> None:
    """Two control records have a struct Voter, with different fields."""
    text = (
        "0000020000000142277dd229894379a47ffb0a05704fa1020b434f4e54524f4c4c45520a3132372e302e302e3199210000000001000000"
    )
    record, _ = decode(VotersRecord, 0, bytes.fromhex(text))
    assert [(voter.voter_id, [(e.name, e.host, e.port) for e in voter.endpoints]) for voter in record.voters] == [
        (1, [("CONTROLLER", "127.0.0.1", 39201)])
    ]
    assert encode(record, 0).hex() == text


@pytest.mark.parametrize(
    ("state", "version", "text"),
    [
        (
            QuorumStateData(leader_id=1, leader_epoch=7, current_voters=[QuorumVoter(1)]),
            0,
            '{"clusterId":"","leaderId":1,"leaderEpoch":7,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}',
        ),
        (
            QuorumStateData(leader_id=1, leader_epoch=1),
            1,
            '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
        ),
    ],
)
def test_quorum_state_file_is_written_and_read(state: QuorumStateData, version: int, text: str) -> None:
    assert write_quorum_state(state, version).decode() == text
    assert read_quorum_state(text.encode()) == (state, version)


def test_quorum_state_that_a_version_cannot_express_is_rejected() -> None:
    with pytest.raises(ValueError, match="voted_directory_id"):
        write_quorum_state(QuorumStateData(voted_directory_id=DIRECTORY), 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "3",
        '{"data_version":2}',
        '{"leaderId":1,"data_version":1}',
        '{"leaderId":"1","leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
        '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAA","data_version":1}',
        '{"clusterId":"","leaderId":1,"leaderEpoch":7,"votedId":-1,"appliedOffset":0,"currentVoters":[3],"data_version":0}',
        '{"data_version":[]}',
        "[" * 100_000,
    ],
)
def test_invalid_quorum_state_file_is_malformed(text: str) -> None:
    with pytest.raises(MalformedMessage):
        read_quorum_state(text.encode())
