"""One module per API. `dispatch.py` names them all; each is loaded by the first request that needs it."""
