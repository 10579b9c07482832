"""What a protocol is: texts for the ranks' roles, written with the verbs of `me`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

Text = Iterator[object]  # a generator; what it yields is the world's business


class Protocol:
    """Texts that each world runs with its own `me`. A subclass is a frozen dataclass of the protocol's settings.

    The verbs, all but `steps` used with `yield from`:

    - `me.steps()`: the rounds, warm-up included
    - `me.sleep()`: the induced straggler of this step
    - `me.compute()`: the gradient of the whole minibatch
    - `me.compute_until(deadline_s, partitions)`: partitions of the minibatch while there is time, at least one
    - `me.send(peers)`, `me.receive(peer)`: a worker sends its gradient and receives parameters, the master the reverse
    - `me.gather(peers)`: receive from each of `peers` in order of arrival and add up
    - `me.update()`: divide the sum by its samples and apply the optimiser
    - `me.evaluate()`: loss and accuracy, where it is due

    and `me.now_s`, the rank's clock.
    """

    name: ClassVar[str]
    arrival_order_matters: ClassVar[bool] = False  # if not, the vector world may run it

    def master(self, me) -> Text:
        """The text of rank 0."""
        raise NotImplementedError

    def worker(self, me) -> Text:
        """The text of ranks 1 to n."""
        raise NotImplementedError

    def alone(self, me) -> Text:
        """The text of a single process that trains undistributed."""
        raise NotImplementedError
