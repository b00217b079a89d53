"""DescribeClientQuotas: the quotas of the entities that match a filter."""

from ottla.wire.schema import Message, array, boolean, f64, i8, i16, i32, string


class ComponentData(Message):
    entity_type: str = string("0+", default="")
    match_type: int = i8("0+", default=0)
    match: str | None = string("0+", nullable="0+", default="")


class DescribeClientQuotasRequest(Message):
    API_KEY = 48
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1

    components: list[ComponentData] = array(ComponentData, "0+", default=())
    strict: bool = boolean("0+", default=False)


class EntityData(Message):
    entity_type: str = string("0+", default="")
    entity_name: str | None = string("0+", nullable="0+", default="")


class ValueData(Message):
    key: str = string("0+", default="")
    value: float = f64("0+", default=0.0)


class EntryData(Message):
    entity: list[EntityData] = array(EntityData, "0+", default=())
    values: list[ValueData] = array(ValueData, "0+", default=())


class DescribeClientQuotasResponse(Message):
    API_KEY = 48
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1

    throttle_time_ms: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default="")
    entries: list[EntryData] | None = array(EntryData, "0+", nullable="0+", default=())
