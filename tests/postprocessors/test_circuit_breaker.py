from llama_index.postprocessor.webrag.circuit_breaker import CircuitBreaker


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_open_breaker_lets_one_trial_through_and_closes_again_when_it_fails() -> None:
    clock = Clock()
    breaker = CircuitBreaker(threshold=2, open_s=30, clock=clock)
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
