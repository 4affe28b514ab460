"""The ways in which a reranking service fails, as one small tree; it decides nothing."""


class RerankError(Exception):
    """A reranking service gave no scores; catch it to go on with the order you have.

    The message is one sentence that names the service and the cause; it never holds the key.

    Attributes:
        provider: Name of the service, for example "Cohere".
        status: HTTP status, if an answer came.
        attempts: Requests made for this call.
        asked_pause_s: Seconds for which the service wants to be left alone.
    """

    def __init__(
        self, message: str, *, provider: str = "", status: int | None = None, attempts: int = 0
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status
        self.attempts = attempts
        self.asked_pause_s = 0.0


class RerankInputError(RerankError, ValueError):
    """The question or the nodes cannot be sent; nothing was sent."""


class RerankRefusedError(RerankError):
    """The service refused the request: its key, its model, its account or its form is wrong."""


class RerankUnavailableError(RerankError):
    """The service could not be reached, is overloaded or failed; later it may work."""


class RerankTimeoutError(RerankUnavailableError):
    """No complete answer came within the time allowed."""


class RerankCircuitOpenError(RerankUnavailableError):
    """Nothing was sent, because the service failed several times in a row just before."""


class RerankResponseError(RerankError):
    """The service answered with something that is not a ranking of what was sent."""
