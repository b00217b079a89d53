"""What the wire layer raises when bytes are not what they claim to be."""


class MalformedMessage(ValueError):
    """The bytes cannot be read as the message they should be; the text says what was wrong, for the log of the broker."""
