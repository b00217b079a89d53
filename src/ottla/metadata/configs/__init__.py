"""Catalog of configs: every config of Kafka 4.3, its allowed values, and which value is effective.

- `definitions_*`: tables of configs, by subject; `definition` parses them, `catalog` combines them
- `documentation_*`: their descriptions, by the same subjects, loaded on demand by `documentation`
- `values`: parsing and formatting of values; `effective`: precedence; `constraints`: rules between configs
- `support`: which configs have an effect in Ottla; `describe`: entries for DescribeConfigs and CreateTopics
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
