"""The protocol as bytes: framing, headers, messages declared once and compiled per version, record batches. No I/O."""
