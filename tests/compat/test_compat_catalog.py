"""Every case of the catalog gets the response that Apache Kafka gave."""

import functools
from typing import Any

import pytest

from tests.compat.catalog.case import Case
from tests.compat.catalog.recorded import all_cases, key, load
from tests.compat.catalog.runner import Run
from tests.compat.conftest import Broker

recorded = functools.cache(load)


@pytest.mark.parametrize(
    ("catalog", "case", "version"),
    [pytest.param(*entry, id=f"{entry[0]}: {entry[1].name} v{entry[2]}") for entry in all_cases()],
)
def test_response_equals_recorded_response(broker: Broker, catalog: str, case: Case, version: int) -> None:
    expected: Any = recorded(catalog)[key(case, version)]
    assert Run(broker.address, version).responses(case) == expected
