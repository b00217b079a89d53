"""The options of the data source, with the names and defaults of Spark's Kafka connector.

Spark passes text values, and names in any case. An unknown name is rejected with a suggestion. An option for another
use case (such as a streaming limit in a batch read) is ignored or rejected, as in Spark's connector. Options with the
prefix `kafka.` are passed to `ottla.client`.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Flag
from typing import Any, NamedTuple

KAFKA_PREFIX = "kafka."
BOOTSTRAP = "kafka.bootstrap.servers"
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class OptionError(ValueError):
    """An option that is unknown, missing or invalid."""


class UseCase(Flag):
    """The four ways to use the data source."""

    READ = 1
    READ_STREAM = 2
    WRITE = 4
    WRITE_STREAM = 8
    ANY_READ = 3
    ANY_WRITE = 12
    ANY = 15


class Option(NamedTuple):
    """One option: parser, default, use cases where it applies, and use cases where it is rejected."""

    name: str
    read: Callable[[str, str], Any]
    default: Any = None
    use_cases: UseCase = UseCase.ANY
    rejected: UseCase = UseCase(0)
    minimum: float = -LONG_MAX
    maximum: float = LONG_MAX
    choices: tuple[str, ...] = ()


def read_text(name: str, text: str) -> str:
    return text


def read_bool(name: str, text: str) -> bool:
    low = text.strip().lower()
    if low not in ("true", "false"):
        raise OptionError(f"Option {name} must be true or false, not {text!r}.")
    return low == "true"


def read_int(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"Option {name} must be an integer, not {text!r}.") from None


_UNITS_MS = {"us": 0.001, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def read_duration_ms(name: str, text: str) -> float:
    """Parse a duration as in Spark: a number and a unit, such as 15m or 500ms, or milliseconds without a unit."""
    import re

    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in ("", *_UNITS_MS):
        raise OptionError(f"Option {name} must be a duration such as 15m, 30s or 500ms, not {text!r}.")
    return int(found[1]) * _UNITS_MS[found[2] or "ms"]


SOURCE: tuple[Option, ...] = (
    Option("assign", read_text, use_cases=UseCase.ANY_READ),
    Option("subscribe", read_text, use_cases=UseCase.ANY_READ),
    Option("subscribePattern", read_text, use_cases=UseCase.ANY_READ),
    Option("startingOffsets", read_text, use_cases=UseCase.ANY_READ),
    Option("startingOffsetsByTimestamp", read_text, use_cases=UseCase.ANY_READ),
    Option("startingTimestamp", read_int, use_cases=UseCase.ANY_READ, minimum=0),
    Option(
        "startingOffsetsByTimestampStrategy",
        read_text,
        "error",
        use_cases=UseCase.ANY_READ,
        choices=("error", "latest"),
    ),
    Option("endingOffsets", read_text, use_cases=UseCase.READ, rejected=UseCase.READ_STREAM),
    Option("endingOffsetsByTimestamp", read_text, use_cases=UseCase.READ, rejected=UseCase.READ_STREAM),
    Option("endingTimestamp", read_int, use_cases=UseCase.READ, rejected=UseCase.READ_STREAM, minimum=0),
    Option("failOnDataLoss", read_bool, True, use_cases=UseCase.ANY_READ),
    Option("minPartitions", read_int, use_cases=UseCase.ANY_READ, minimum=1),
    Option("maxRecordsPerPartition", read_int, use_cases=UseCase.ANY_READ, minimum=1),
    Option("maxOffsetsPerTrigger", read_int, use_cases=UseCase.READ_STREAM, minimum=1),
    Option("minOffsetsPerTrigger", read_int, use_cases=UseCase.READ_STREAM, minimum=1),
    Option("maxTriggerDelay", read_duration_ms, 900_000.0, use_cases=UseCase.READ_STREAM),
    Option("groupIdPrefix", read_text, "spark-kafka-source", use_cases=UseCase.ANY_READ),
    Option("kafkaConsumer.pollTimeoutMs", read_int, 120_000, use_cases=UseCase.ANY_READ, minimum=1),
    Option("fetchOffset.numRetries", read_int, 3, use_cases=UseCase.ANY_READ, minimum=0),
    Option("fetchOffset.retryIntervalMs", read_int, 1_000, use_cases=UseCase.ANY_READ, minimum=0),
    Option("includeHeaders", read_bool, False),
    Option("groupId", read_text, use_cases=UseCase.ANY_READ),
    Option("isolationLevel", read_text, use_cases=UseCase.ANY_READ, choices=("read_uncommitted", "read_committed")),
)
"""Options of reads: those of Spark's connector, then those from `includeHeaders` on that it does not have."""

SINK: tuple[Option, ...] = (
    Option("topic", read_text, use_cases=UseCase.ANY_WRITE),
    Option("checkpointLocation", read_text),
    Option("path", read_text),
)
"""Options of writes. Spark itself adds the last two to a sink's options."""

FORMATS = ("json", "avro", "protobuf", "string", "arrow-ipc")
SUBJECT_STRATEGIES = ("topicnamestrategy", "recordnamestrategy", "topicrecordnamestrategy")

VALUES: tuple[Option, ...] = (
    Option("keyFormat", read_text, choices=FORMATS),
    Option("valueFormat", read_text, choices=FORMATS),
    Option("keySchema", read_text),
    Option("valueSchema", read_text),
    Option("keyMessage", read_text),
    Option("valueMessage", read_text),
    Option("schemaRegistryUrl", read_text),
    Option("keySubject", read_text),
    Option("valueSubject", read_text),
    Option("subjectStrategy", read_text, "topicnamestrategy", choices=SUBJECT_STRATEGIES),
    Option("registerSchemas", read_bool, False, use_cases=UseCase.ANY_WRITE),
    Option("errorColumn", read_text, use_cases=UseCase.ANY_READ),
    Option("errorTopic", read_text, use_cases=UseCase.ANY_READ),
)
"""Options of formats, for reads and writes."""

OPTIONS: tuple[Option, ...] = (*SOURCE, *SINK, *VALUES)


class Options(Mapping[str, Any]):
    """Option values by name, with defaults. `kafka` has the client configs."""

    __slots__ = ("_given", "_values", "kafka")

    def __init__(self, values: dict[str, Any], given: frozenset[str], kafka: dict[str, str]) -> None:
        self._values = values
        self._given = given
        self.kafka = kafka

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def is_given(self, name: str) -> bool:
        """Whether the user set the option."""
        return name in self._given


def parse_options(given: Mapping[str, str], use_case: UseCase) -> Options:
    """Parse the options of a query. Raises OptionError."""
    known = {option.name.lower(): option for option in OPTIONS}
    values = {option.name: option.default for option in OPTIONS}
    kafka: dict[str, str] = {}
    names: dict[str, None] = {}
    for name_as_given, text in given.items():
        name = name_as_given.lower()
        if name.startswith(KAFKA_PREFIX):
            kafka[name.removeprefix(KAFKA_PREFIX)] = text
            continue
        option = known.get(name)
        if option is None:
            raise OptionError(_unknown(name_as_given))
        if use_case in option.rejected:
            raise OptionError(f"Option {option.name} does not apply to {_describe_use_case(use_case)}; remove it.")
        if option.use_cases & use_case:
            values[option.name] = _read(option, text)
            names[option.name] = None
    if not kafka.get("bootstrap.servers", "").strip():
        raise OptionError(
            f"Option {BOOTSTRAP} is missing; set it to one or more broker addresses, such as '127.0.0.1:9092'."
        )
    return Options(values, frozenset(names), kafka)


def is_given(options: Mapping[str, str], name: str) -> bool:
    """Whether a query sets an option, ignoring case."""
    return any(name_as_given.lower() == name.lower() for name_as_given in options)


def _read(option: Option, text: str) -> Any:
    value = option.read(option.name, text)
    if isinstance(value, int | float) and not isinstance(value, bool) and not option.minimum <= value <= option.maximum:
        bounds = (
            f"at least {option.minimum:g}"
            if option.maximum == LONG_MAX
            else f"from {option.minimum:g} to {option.maximum:g}"
        )
        raise OptionError(f"Option {option.name} must be {bounds}, not {text!r}.")
    if option.choices:
        value = value.strip().lower()
        if value not in option.choices:
            raise OptionError(f"Option {option.name} must be one of {', '.join(option.choices)}, not {text!r}.")
    return value


def _unknown(name_as_given: str) -> str:
    from difflib import get_close_matches

    spelled = {option.name.lower(): option.name for option in OPTIONS} | {BOOTSTRAP: BOOTSTRAP}
    nearest = get_close_matches(name_as_given.lower(), list(spelled), n=1, cutoff=0.5)
    hint = f" Did you mean {spelled[nearest[0]]}?" if nearest else ""
    return f"Data source ottla has no option {name_as_given!r}.{hint} Client configs have the prefix 'kafka.'."


def _describe_use_case(use_case: UseCase) -> str:
    names = {
        UseCase.READ: "a batch read",
        UseCase.READ_STREAM: "a streaming read",
        UseCase.WRITE: "a batch write",
        UseCase.WRITE_STREAM: "a streaming write",
    }
    return names.get(use_case, "this query")
