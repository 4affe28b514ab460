from webrag.ingestion.firecrawl.circuit import CircuitBreaker


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def breaker(clock: Clock) -> CircuitBreaker[str]:
    return CircuitBreaker(failures=2, pause_s=10, clock=clock)


def test_one_failure_stops_nothing() -> None:
    circuit = breaker(Clock())

    circuit.failed("down")

    assert circuit.blocking is None


def test_failures_in_a_row_begin_a_pause_with_the_last_reason() -> None:
    circuit = breaker(Clock())

    circuit.failed("down")
    circuit.failed("still down")

    assert circuit.blocking == "still down"


def test_success_between_failures_starts_the_count_again() -> None:
    circuit = breaker(Clock())

    circuit.failed("down")
    circuit.succeeded()
    circuit.failed("down")

    assert circuit.blocking is None


def test_pause_ends_by_itself_and_the_next_failure_begins_another() -> None:
    clock = Clock()
    circuit = breaker(clock)
    circuit.failed("down")
    circuit.failed("down")

    clock.now = 10.5
    assert circuit.blocking is None
    circuit.failed("down again")

    assert circuit.blocking == "down again"


def test_pause_of_a_given_length_begins_at_once() -> None:
    clock = Clock()
    circuit = breaker(clock)

    circuit.failed("wait", pause_s=100)
    clock.now = 99

    assert circuit.blocking == "wait"
