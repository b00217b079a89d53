"""The catalogue of configs: every config that Kafka 4.3 knows, what may be given, whose value counts.

`configs.describe` and `configs.documentation` are imported by those who answer for them.
"""

from ottla.metadata.configs.catalog import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    broker_definition,
    nearest,
    validate_broker_config,
    validate_topic_config,
)
from ottla.metadata.configs.definition import ConfigSource, ConfigType, ConfigValue, Definition, InvalidConfig
from ottla.metadata.configs.effective import (
    BrokerLayers,
    TypedConfig,
    broker_value,
    effective_topic_config,
    merged_broker_config,
    validate_topic_configs,
)
from ottla.metadata.configs.values import parse, value_text

__all__ = [
    "BROKER_CONFIGS",
    "BrokerLayers",
    "CLIENT_METRICS_CONFIGS",
    "ConfigSource",
    "ConfigType",
    "ConfigValue",
    "Definition",
    "GROUP_CONFIGS",
    "InvalidConfig",
    "TOPIC_CONFIGS",
    "TypedConfig",
    "broker_definition",
    "broker_value",
    "effective_topic_config",
    "merged_broker_config",
    "nearest",
    "parse",
    "validate_broker_config",
    "validate_topic_config",
    "validate_topic_configs",
    "value_text",
]
