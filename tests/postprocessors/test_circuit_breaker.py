from llama_index.postprocessor.webrag.service_calls import CircuitBreaker


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_open_breaker_lets_one_trial_through_and_closes_again_when_it_fails() -> None:
    clock = Clock()
    breaker: CircuitBreaker[None] = CircuitBreaker(threshold=2, open_s=30, clock=clock)
    breaker.failed()
    assert breaker.seconds_left() == 0.0
    breaker.failed()
    clock.now += 10
    assert breaker.seconds_left() == 20.0

    clock.now += 20
    assert [breaker.seconds_left(), breaker.seconds_left()] == [0.0, 30.0]
    clock.now += 5
    breaker.failed()
    assert breaker.seconds_left() == 30.0
    breaker.succeeded()
    assert breaker.seconds_left() == 0.0


def test_reason_of_the_last_failure_is_kept_until_a_success() -> None:
    breaker: CircuitBreaker[str] = CircuitBreaker(threshold=2, open_s=10, clock=Clock())
    breaker.failed("down")
    breaker.failed("still down")
    assert (breaker.reason, breaker.seconds_left()) == ("still down", 10.0)

    breaker.succeeded()

    assert (breaker.reason, breaker.seconds_left()) == (None, 0.0)


def test_success_between_failures_starts_the_count_again() -> None:
    breaker: CircuitBreaker[str] = CircuitBreaker(threshold=2, open_s=10, clock=Clock())

    breaker.failed("down")
    breaker.succeeded()
    breaker.failed("down")

    assert breaker.seconds_left() == 0.0


def test_pause_of_a_given_length_begins_at_once() -> None:
    clock = Clock()
    breaker: CircuitBreaker[str] = CircuitBreaker(threshold=5, open_s=10, clock=clock)

    breaker.failed("wait", pause_s=100)
    clock.now += 99

    assert (breaker.reason, breaker.seconds_left()) == ("wait", 1.0)
