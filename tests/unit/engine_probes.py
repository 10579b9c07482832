"""Small texts of users that Python and a careless compiler would read differently: which of them the engine runs, and which it refuses.

Each sets `x` in each step of a job without a master; how often a rank then sleeps says what it is.
"""

from __future__ import annotations

HEAD = """import math
import random
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import cached_property, wraps
from types import SimpleNamespace

from sim.collectives.base import hand, swap, take as taken
from sim.protocols.base import Protocol
from sim.verbs import allreduce, answer, gather, reduce, take, take_first, training
from sim.verbs.me import GRADIENT, PARAMETERS, Note, Partition

SEEN, TABLE, BOX, LIMIT, i, w = [], {"a": 1, 2: 3}, SimpleNamespace(count=1), 1.5, 3, 2


class Kind:
    def __add__(self, other):
        return random.random()

    def __bool__(self):
        return False

    def __getattr__(self, name):
        return random.random()


KIND = Kind()


def shadowed(function):
    @wraps(function)
    def called(*given):
        return 2
    return called
"""

TAIL = """
            for _ in range(3):
                if x > 0:
                    yield from me.sleep()
                x = x - 1
            yield from me.compute()
            yield from me.update()

    def number(self, value):
        return value + 1

    def several(self, value):
        if value > 1:
            return value
        return 1

    def perhaps(self, value):
        if value > 1:
            return 2

    def version_and(self, me):
        before = me.version
        yield from me.compute()
        yield from me.update()
        return before

    def defaults(self, a, b=2, *, c=3):
        return a * b - c

    def changed(self, a, *, c=3):
        for _ in range(2):
            c = c + a
        return c % 4

    def collected(self, *several):
        return len(several)

    def named(self, **several):
        return len(several)

    def fill(self, many):
        many.append(7)

    def replaced(self, a, b):
        if b:
            return a
        return b

    def again(self, n):
        return 1 if n < 1 else self.again(n - 1)

    def computed(self, me):
        yield from me.compute()
        return 0

    def late(self, me):
        value = me.step
        yield from me.sleep()
        return value

    @property
    def steady(self):
        return self.share * 2

    @cached_property
    def once(self):
        return random.random()

    @property
    def moving(self):
        return random.random()

    @staticmethod
    def alone(value):
        return value + 2

    @shadowed
    def wrapped(self, value):
        return value
"""

SAME, REFUSED, FAILS = (
    "same",
    "refused",
    "fails",
)  # FAILS: the event world names a mistake, and the engine has no answer
PROBES = {
    # ---- names
    "best = None\nx = 1\nif step > 0:\n    best = 5\n    x = best": REFUSED,
    "best = None\nfor k in range(3):\n    if best is None or k > best:\n        best = k\nx = best": REFUSED,
    "x = 1\nx = None\nx = 2": REFUSED,
    "x = 0\nfor k in range(3):\n    x = k": SAME,
    "for x in range(3):\n    pass\nx = x": REFUSED,
    "k = 0\nfor k in range(step + 1):\n    pass\nx = k": SAME,
    "x = 0\nfor k in range(3):\n    k = k + 5\n    x += k > 5": SAME,
    "x = 0\nfor k in range(2):\n    k += 5\n    x += k": SAME,
    "x = 0\nfor k in range(6):\n    while k < 3:\n        k += 1\n        x += 1": SAME,
    "x = 0\nfor k in range(3):\n    for k in range(4):\n        pass\n    x += k": SAME,
    "x = 0\nfor k in [1, 2]:\n    x += k\nfor k in (step, 1):\n    x -= k": SAME,
    "w = 1\nxs = [w * 2 for w in range(3)]\nx = w": SAME,
    "xs = [w * 2 for w in range(3)]\nx = w + xs[0]": SAME,
    "x = sum(w for w in range(2)) + w": SAME,
    "x = i": SAME,
    "x = i\nif step > 5:\n    i = 1": REFUSED,
    "if step:\n    y = 1\nx = y if step else 0": REFUSED,
    "if step:\n    y = 1\nelse:\n    y = 2\nx = y": SAME,
    "x = 0\nfor k in range(3):\n    if k == step:\n        y = 2\n    else:\n        continue\n    x = y": SAME,
    "x = 0\nfor k in range(3):\n    if k == step:\n        y = 2\n        break\n    x = k\nx += y": REFUSED,
    "x = undefined": REFUSED,
    "x = 2\ndel x\nx = 1": REFUSED,
    "a, b = 1, 2\na, b = b, a\nx = a": SAME,
    "a, b = step, 2\na, b = b, a + b\nx = b": SAME,
    "(a, b), c = (1, 2), 3\nx = a": REFUSED,
    "a, *b = 1, 2, 3\nx = a": REFUSED,
    "a = b = step\na = 3\nx = b": SAME,
    "a, b = c = 1, 2\nx = c[1]": SAME,
    "x: int = 2": SAME,
    "x: int\nx = 1": SAME,
    "y = step\nz = y\ny = 5\nx = z": SAME,
    "pair = (step, 1)\nx = pair[0]": SAME,
    "y = step\npair = (y, 1)\ny = 3\nx = pair[0]": SAME,
    "y = 1\nx = 0\nfor v in (y, y, 2):\n    y = 5\n    x += v": SAME,
    "x = (y := 2) + y": REFUSED,
    "global LIMIT\nLIMIT = 3\nx = 1": REFUSED,
    "import os\nx = 1": REFUSED,
    "v = me.version\nyield from me.compute()\nyield from me.update()\nx = v": FAILS,
    (
        "v = me.version\n"
        "yield from me.compute()\n"
        "yield from me.update()\n"
        "if v == me.version:\n"
        "    yield from me.sleep()\n"
        "continue"
    ): SAME,
    (
        "n = me.samples + (yield from self.computed(me))\n"
        "if n > 0:\n"
        "    yield from me.sleep()\n"
        "yield from me.update()\n"
        "continue"
    ): SAME,
    "s = me.samples, me.rank\nyield from me.sleep()\nx = s[1] + s[0]": SAME,
    "x = me.step + (yield from self.late(me))": SAME,
    # ---- and, or, not, comparisons
    "x = step and 3": REFUSED,
    "x = step or 2": REFUSED,
    "x = 0 or step": REFUSED,
    "x = not (step and me.rank)": SAME,
    "x = 2 if step and me.rank else 0": SAME,
    "x = 1\nif step > 0 and (me.rank or step > 1):\n    x = 3": SAME,
    "x = 1\nwhile x < 3 and not (step or me.rank):\n    x += 1": SAME,
    "x = sum(1 for k in range(4) if k and k < 3)": SAME,
    "x = len([k for k in range(4) if k > step or k == 0])": SAME,
    "x = 0 < step < 3": REFUSED,
    "x = 1 < 2 == True": REFUSED,
    "x = (step == 1) + (step >= 1) + True": SAME,
    "x = True + 1": SAME,
    "x = -(step > 0) + 2": SAME,
    "x = step is me.rank": REFUSED,
    "x = None is None": SAME,
    "x = (step is None) + 1": SAME,
    "x = (step in me.workers) + (me.rank not in [1, 4])": SAME,
    "x = step in {1, 2}": REFUSED,
    "x = 1.5 in me.workers": SAME,
    "x = 'a' in 'abc'": SAME,
    "x = 'a' < 'b'": SAME,
    "x = 'ab' == f'{step}'": REFUSED,
    "limit = math.inf\nx = 1\nif limit == math.inf:\n    x = 2\nlimit = 5": SAME,
    "limit = math.inf\nlimit = min(limit, 2)\nx = limit": SAME,
    "x = 2 if me.updates > 5 else 1": SAME,
    "x = 2 if None else 1": SAME,
    "y = None if step else 2\nx = y or 1": REFUSED,
    "y = 'a' if step else 'b'\nx = 1": REFUSED,
    # ---- numbers
    "x = (step - 3) // 2 + 3": SAME,
    "x = (step - 3) % 2 + (3 - step) % -2 + 2": SAME,
    "x = (step + 1.0) // 0.1 - 8": SAME,
    "x = (step + 1) % 0.1 * 20": SAME,
    "x = (step - 5.5) % 3": SAME,
    "x = (step - 5.5) // -2.5": SAME,
    "x = 7 // -2 + 5": SAME,
    "x = 1 / step": FAILS,
    "x = 1 // step": FAILS,
    "x = 1 % step": FAILS,
    "x = 1.0 % (step * 1.0)": FAILS,
    "x = 1\nif step < 0:\n    x = 1 / 0": REFUSED,
    "x = step ** 2": REFUSED,
    "x = 2 ** 2 ** 1 - 2": SAME,
    "x = step << 1": REFUSED,
    "x = ~step + 4": REFUSED,
    "x = +step": REFUSED,
    "x = (step ^ 3) & 2 | 1": SAME,
    "x = (step - 3) & 3": SAME,
    "x = (step / 1) | 1": REFUSED,
    "y = step\ny = y / 1\nx = y & 1": REFUSED,
    "x = 2 ** 53 + step - 2 ** 53": REFUSED,
    "y = 2 ** 52 + step\ny = y * 2\nx = y + 1 - y": FAILS + " here",
    "y = 1\nfor _ in range(60):\n    y *= 2\nx = (y + 1) % 2": FAILS + " here",
    "y = 1.0\nfor _ in range(60):\n    y *= 2\nx = (y + 1) % 2": SAME,
    "y = 1e300\ny = y / 2\nx = y > 1": SAME,
    "y = math.inf\ny = y - 5\nx = 1 + (y == math.inf)": SAME,
    "x = max(step, 1) + min(me.rank, 0.5)": SAME,
    "x = max(step, 1, 2)": REFUSED,
    "x = min(step, 1, key=lambda k: -k)": REFUSED,
    "x = max(step, me.rank, default=2)": FAILS + " refused",
    "x = max([1, 2]) + max(k for k in (1, 0))": SAME,
    "x = max(k for k in (1, 0)) + sum((1, 2))": SAME,
    "x = len(k for k in (1, 0))": FAILS + " refused",
    "g = (k for k in (1, 2))\nx = sum(g) + sum(g)": REFUSED,
    "x = abs(step)": REFUSED,
    "x = abs(-2) + int(2.5) + round(0.4)": SAME,
    "x = int(step)": REFUSED,
    "x = sum(1 for v in me.scenario.workload.variables if v.size > 9)": SAME,
    "x = me.now_s > 0.02": SAME,
    "x = random.random()": REFUSED,
    "x = time.time()": REFUSED,
    "x = KIND + 1": REFUSED,
    "x = 2 if KIND else 1": REFUSED,
    "x = KIND.size": REFUSED,
    "x = hash('a')": REFUSED,
    "x = id(me) > 0": REFUSED,
    "x = math.sqrt(me.now_s)": REFUSED,
    "x = random.choice([1, 2])": REFUSED,
    "x = len({worker for worker in me.workers})": REFUSED,
    "x = 1 + (me.rank in me.workers[1:])": SAME,
    "x = 2 if step or me.now_s else 1": SAME,
    # ---- lists, sets, dictionaries
    "xs = [step, 1]\nys = xs\nys[0] = 3\nx = xs[0]": SAME,
    "xs = []\nself.fill(xs)\nx = xs[0] - 5": SAME,
    "xs = [step]\nxs.append(2)\nx = xs[-1] + len(xs)": SAME,
    "xs = (step,)\nxs.append(2)\nx = 1": FAILS + " refused",
    "xs = [1, 2]\nx = xs[5]": FAILS,
    "xs = [1, 2]\nx = xs[-3]": FAILS,
    "xs = [1, 2]\nxs[-1] = 0\nx = xs[1]": SAME,
    "xs = [1, 2]\nxs[2] = 1\nx = 1": FAILS,
    "xs = [1, 2]\nx = xs[step / 1]": FAILS + " refused",
    "xs = [1, 2, 3]\nx = xs[1:][0]": REFUSED,
    "xs = [0] * 3\nxs[1] += 2\nx = xs[1]": REFUSED,
    "xs = [0 for _ in range(3)]\nxs[step % 3] += 2\nx = xs[0] + xs[1]": SAME,
    "xs = [0, 0]\nxs[me.rank % 2] += (yield from self.late(me))\nx = xs[0]": SAME,
    "xs = [1]\nxs += [2]\nx = len(xs)": REFUSED,
    "xs = [1]\nxs = [2]\nx = xs[0]": REFUSED,
    "xs = [1, 2] if step else [3]\nx = xs[0]": REFUSED,
    "xs = [[1, 2], [3]]\nx = 1": REFUSED,
    "xs = [1, 2]\nxs.pop()\nx = xs[0]": REFUSED,
    "xs = [1, 2]\nxs.extend([3, step])\nx = xs[-1]": SAME,
    "xs = [2, 1]\nxs.sort()\nx = xs[0]": REFUSED,
    "xs = deque([1, 2])\nx = xs.popleft()": REFUSED,
    "xs = [1, 2]\nx = xs.popleft()": FAILS + " refused",
    "xs = [1, 2]\nx = 0\nfor k in xs:\n    if len(xs) < 5:\n        xs.append(k)\n    x += 1": SAME,
    "x = len(Counter([1, 2]))": REFUSED,
    "xs = {1: 2}\nx = xs[1]": REFUSED,
    "x = TABLE['a'] + TABLE[2] - 2": SAME,
    "x = TABLE.get('a')": REFUSED,
    "SEEN.append(1)\nx = len(SEEN)": REFUSED,
    "BOX.count += 1\nx = BOX.count": REFUSED,
    "some = set(me.workers)\nsome.discard(1)\nx = len(some)": SAME,
    "some = set()\nsome.add(step % 2)\nx = (0 in some) + len(some)": SAME,
    "some = set(me.workers)\nsome.remove(1)\nsome.remove(1)\nx = 1": FAILS,
    "some = {1, 0}\nx = len(some)": REFUSED,
    "some = set(me.workers) - {1}\nx = len(some)": REFUSED,
    "x = 0\nfor k in set(me.workers):\n    x = k": REFUSED,
    "x = me.workers[step % 2] + me.workers[-1]": SAME,
    "x = me.workers[step + 7]": FAILS,
    "x = [w + 1 for w in me.workers][me.rank]": SAME,
    "x = len([a + b for a in range(2) for b in range(2)])": REFUSED,
    "x = sorted([2, 1])[0]": REFUSED,
    "x = sum(k for k, _ in enumerate((1, 1)))": REFUSED,
    # ---- loops
    "x = 0\nfor k in range(5):\n    if k == 2:\n        break\n    x += 1": SAME,
    "x = 0\nfor k in (1, 2):\n    if step == k:\n        break\n    x += 1": SAME,
    "x = 0\nfor k in (1, 2):\n    if step == 1:\n        continue\n    x += k": SAME,
    (
        "x = 0\n"
        "for k in range(2):\n"
        "    for m in range(4):\n"
        "        if m > step:\n"
        "            break\n"
        "        x += 1\n"
        "        if m == 1:\n"
        "            continue"
    ): SAME,
    "x = 0\nfor k in range(3):\n    x += 1\nelse:\n    x = 1": REFUSED,
    "x = 0\nwhile x < 2:\n    x += 1\nelse:\n    x = 1": REFUSED,
    "x = 0\nwhile True:\n    x += 1\n    if x > step:\n        break": SAME,
    "x = 0\nfor k in range(0, 6, 2):\n    x += k > 1": SAME,
    "x = 0\nfor k in range(3, -1, -1):\n    x = k + 1": SAME,
    "x = 0\nfor k in range(step, 3):\n    x += 1": SAME,
    "x = 0\nfor k in range(step / 1):\n    x += 1": FAILS + " refused",
    "x = 0\nn = step\nfor k in range(n):\n    n = 5\n    x += 1": SAME,
    "x = 0\nfor k in range(0, step, 2):\n    x += 1": REFUSED,
    "x = 0\nfor a, b in ((1, 2), (3, 4)):\n    x += a": REFUSED,
    "x = 0\nfor k in 'ab':\n    x += 1": REFUSED,
    "x = 1\nfor _ in me.steps():\n    x = 2\n    break": FAILS + " here",
    # ---- calls
    "x = self.number(step)": SAME,
    "x = self.number(value=step)": SAME,
    "x = self.number(step, 1)": FAILS + " refused",
    "x = self.number(step, other=1)": FAILS + " refused",
    "x = self.number(**{'value': 1})": REFUSED,
    "x = self.number(*(step,))": SAME,
    "x = self.defaults(step, c=1)": SAME,
    "x = self.defaults(step + 2)": SAME,
    "x = self.changed(step, c=2)": SAME,
    "x = self.collected(1, 2)": REFUSED,
    "x = 1\nyield from allreduce(me, fused=step > 1)": REFUSED,
    "x = 1\nyield from me.cycle(0.1)": REFUSED,
    "x = 1\nyield from me.compute(part=Partition(0, 1))\nyield from me.update()\ncontinue": SAME,
    "x = 1 + me.summed": SAME,
    "x = 1\nyield from me.compute()\nyield from reduce(me, 'ring', slice(0, 10**9))\nyield from me.update()\ncontinue": FAILS,
    "x = 1\nyield from me.exchange(swap(me.rank ^ 1, slice(5, 3), slice(0, 1)))": FAILS,
    "x = 1\nyield from me.exchange(swap(me.rank + 7, slice(0, 9), slice(0, 9)))": FAILS,
    "x = 1\nyield from me.exchange(swap(me.rank ^ 1, slice(0, 9), slice(0, 9)))": SAME,
    "x = 1\nyield from me.exchange(swap(me.rank ^ 1, slice(0, 9), slice(0, 8)))": FAILS,
    "x = 1\nyield from me.exchange(swap(me.rank ^ 1, slice(0, 8), slice(0, 9)))": FAILS,
    **{
        f"yield from me.compute()\nif me.rank:\n    yield from reduce(me, '{name}', slice(0, {size}))\n"
        f"else:\n    yield from reduce(me, '{name}', slice(0, 9))\nyield from me.update()\ncontinue": verdict
        for name in ("ring", "tree")
        for size, verdict in ((9, SAME), (16, FAILS))
    },
    "x = 1\nyield from me.compute(Partition(me.rank + 4, 4))": FAILS,
    "x = 1\nyield from me.compute()": FAILS,
    "x = 1\nyield from me.update()": FAILS,
    "x = 1\nyield from me.compute()\nyield from me.update()": FAILS,
    "x = 1\nyield from me.compute()\nyield from allreduce(me)\nyield from allreduce(me)\nyield from me.update()": FAILS,
    "x = 1\nyield from me.send(PARAMETERS, 0)": FAILS,
    "x = self.named(a=1)": REFUSED,
    "x = self.several(step)": SAME,
    "x = self.perhaps(step) or 1": REFUSED,
    "y = self.perhaps(step)\nx = 1": REFUSED,
    "y = 1\nx = self.replaced(step, y) + step": SAME,
    "x = self.again(2)": REFUSED,
    "x = self.steady": SAME,
    "x = self.once": REFUSED,
    "x = self.moving": REFUSED,
    "x = self.alone(step)": SAME,
    "x = self.wrapped(step)": REFUSED,
    "f = self.number\nx = f(1)": SAME,
    "f = lambda k: k + 1\nx = f(1)": REFUSED,
    "def f():\n    return 2\nx = f()": REFUSED,
    "x = yield from self.late(me)": SAME,
    "x = self.late(me) is None": REFUSED,
    "x = 1\nyield from self.number(1)": FAILS + " refused",
    "x = 1\nyield from [1]": FAILS + " refused",
    "x = 1\nyield from ()": SAME,
    "x = 1\nyield from (me.sleep() if step else ())": SAME,
    "x = 1\nyield": FAILS + " refused",
    "y = yield from me.sleep()\nx = 1": REFUSED,
    "print(step)\nx = 1": REFUSED,
    "x = 1\nassert step < 5": REFUSED,
    "try:\n    x = 1\nfinally:\n    x = 2": REFUSED,
    "x = 1\nif step > 7:\n    raise ValueError": REFUSED,
    "with BOX as y:\n    x = 1": FAILS + " refused",
    "match step:\n    case 1:\n        x = 1\n    case _:\n        x = 2": REFUSED,
    "self.share = 2\nx = 1": FAILS + " refused",
    "me.step = 1\nx = 1": FAILS + " refused",
    "x = getattr(me, 'rank')": REFUSED,
    "x = me.rank.real": REFUSED,
    "x = self.share + self.rounds": SAME,
    "x = me.scenario.batch > 3": SAME,
    "x = len(me.hosts) + (me.delays is None)": SAME,
    "x = me.book.rounds + 1": REFUSED,
    "x = 1\nnot_a_verb = me.nothing": FAILS + " refused",
    "m = me\nx = m.rank + 1": SAME,
    "x = 1\nyield from me.compute(Partition(index=0, of=1))\nyield from me.update()\ncontinue": SAME,
    "x = 1\nfor k in range(2):\n    yield from me.compute(Partition(k, 2))\nyield from me.update()\ncontinue": SAME,
    "x = 1\nyield from me.compute(Partition(0, step + 1))\nyield from me.update()\ncontinue": REFUSED,
    "p = Partition(0, 1)\nx = 1": REFUSED,
    "x = 1\nyield from me.beside(self.late(me), me.sleep())": SAME,
}
# The text of a master beside workers that each send a gradient a step. How long it takes says what it is.
MASTERS = {
    "a = yield from me.receive(me.workers)\nb = a\na = yield from me.receive(me.workers)\nyield from me.add(a)\nyield from me.add(b)": SAME,
    "a = yield from me.receive(me.workers)\nb = a\nyield from me.add(a)\nyield from me.add(b)": FAILS,
    (
        "n = 0\n"
        "last = None\n"
        "while n < 2:\n"
        "    last = yield from me.receive(me.workers)\n"
        "    yield from me.add(last)\n"
        "    n += 1\n"
        "if last.sender == 1:\n"
        "    yield from me.sleep()"
    ): SAME,
    (
        "n = 0\n"
        "while n < 2:\n"
        "    late = yield from me.receive(me.workers, me.now_s + 0.01)\n"
        "    if late is None:\n"
        "        continue\n"
        "    n += 1\n"
        "    yield from me.add(late)"
    ): SAME,
    (
        "n = 0\n"
        "while n < 2:\n"
        "    late = yield from me.receive(me.workers, me.now_s + 0.01)\n"
        "    if late:\n"
        "        n += 1\n"
        "        yield from me.add(late)"
    ): SAME,
    "late = yield from me.receive(me.workers, me.now_s + 1e-6)\nn = late.sender\nyield from gather(me, me.workers)": FAILS,
    "late = yield from me.receive(me.workers, me.now_s + 1e-6)\nyield from me.add(late)\nyield from gather(me, me.workers)": FAILS,
    "late = yield from me.receive(me.workers, until_s=math.inf)\nyield from me.add(late)\nyield from gather(me, 3 - late.sender)": SAME,
    "a = yield from me.receive(me.workers)\nyield from me.add(a)\nyield from gather(me, (3 - a.sender) / 1)": REFUSED,
    "a = yield from me.receive(me.workers)\nyield from me.add(a)\nyield from gather(me, 5 - a.sender)": FAILS,
    "yield from gather(me, [1, 2, 3])": FAILS,
    "some = [1, 2]\nyield from gather(me, some)": SAME,
    "some = set(me.workers)\nwhile some:\n    a = yield from me.receive(some)\n    some.remove(a.sender)\n    yield from me.add(a)": SAME,
    (
        "some = []\n"
        "while len(some) < 2:\n"
        "    a = yield from me.receive(me.workers)\n"
        "    yield from me.add(a)\n"
        "    if a.sender in some:\n"
        "        continue\n"
        "    some.append(a.sender)\n"
        "if some[0] > some[1]:\n"
        "    yield from me.sleep()"
    ): SAME,
    (
        "a = yield from me.receive(me.workers)\n"
        "n = a.samples + a.version + a.minibatches\n"
        "yield from me.add(a)\n"
        "yield from gather(me, 3 - a.sender)\n"
        "for _ in range(n // 20):\n"
        "    yield from me.sleep()"
    ): SAME,
    (
        "a = yield from me.receive(me.workers)\n"
        "yield from me.add(a)\n"
        "b = a if step else None\n"
        "yield from gather(me, 3 - a.sender)\n"
        "if b is None:\n"
        "    yield from me.sleep()"
    ): SAME,
    "yield from me.send(PARAMETERS, set(me.workers), wait=False)\nyield from gather(me, me.workers)": REFUSED,
    "yield from me.send(PARAMETERS, me.workers, wait=step > 1)\nyield from gather(me, me.workers)": REFUSED,
    "yield from me.receive([7, 1], me.now_s)\nyield from gather(me, me.workers)": FAILS,
    "x = yield from gather(me, me.workers)": REFUSED,
    "yield from gather(me, me.workers)\nyield from allreduce(me)": FAILS,
    "yield from me.send(GRADIENT, me.workers)\nyield from gather(me, me.workers)": FAILS,
    "yield from gather(me, me.workers)\nif step == 2:\n    yield from me.send(GRADIENT, me.workers)": FAILS,
    "yield from me.exchange(swap(1, slice(0, 1), slice(0, 1)))\nyield from gather(me, me.workers)": FAILS,
    "yield from gather(me, peers=me.workers)": SAME,
    "a = yield from me.receive(peers=me.workers)\nyield from me.add(a)": FAILS + " refused",
    "yield from gather(me.workers, me)": FAILS + " refused",
    "a = yield from me.receive(me.workers)\nb = self.late(a, step)\nyield from me.add(a)\nyield from gather(me, 3 - a.sender)": SAME,
}
# What docs/protocol.md says is in the subset, and what is not: each as a text.
LOOP = "x = 0\nfor k in {}:\n    x += k"
LISTED = "xs = [step, 1]\nys = [2, 3]\n{}\nx = xs[-1] + len(xs)"
RANKS = "some = set(me.workers)\n{}\nx = len(some)"
COMPARED = "x = (step {} 1) + 1"
IN_TABLE = {
    "a, b = b, a": "a, b = 1, step\na, b = b, a\nx = b + a",
    **{said: f"x = 1\n{said}" for said in ("x = step", "x: int = 2", "x += 1")},
    "a = b = step": "a = b = step\nx = a + b",
    **{said: LISTED.format(said) for said in ("xs[0] = 2", "xs[step % 2] += 1", "xs.append(1)", "xs.extend(ys)")},
    **dict.fromkeys(("if", "elif", "else"), "if step > 1:\n    x = 1\nelif step:\n    x = 2\nelse:\n    x = 3"),
    **dict.fromkeys(("while", "break"), "x = 0\nwhile x < 5:\n    x += 1\n    if x > step:\n        break"),
    **dict.fromkeys(("for", "continue"), "x = 0\nfor k in range(3):\n    if k == step:\n        continue\n    x += 1"),
    **{"return": "x = self.several(step)", "pass": "x = 1\npass", "yield from": "x = 1\nyield from me.sleep()"},
    **{said: LOOP.format(said) for said in ("range(step)", "range(0, 6, 2)", "(1, step)", "me.workers")},
    "me.steps()": "x = 1",
    **{sign: f"x = (step - 1) {sign} 2 + 1" for sign in ("+", "-", "*", "/", "//", "%", "&", "|", "^")},
    **{said: f"x = {said}" for said in ("min(step, 1)", "max(step, 1)", "2 if step else 1", "self.share")},
    **{sign: COMPARED.format(sign) for sign in ("<", "<=", ">", ">=", "==", "!=")},
    **{sign: f"y = None\nx = (y {sign}) + 1" for sign in ("is None", "is not None")},
    **{sign: f"x = (step {sign} me.workers) + 1" for sign in ("in", "not in")},
    **{word: f"x = 2 if step {word} me.rank else 1" for word in ("and", "or")},
    "not": "x = (not step) + 1",
    **{said: f"ks = {said}\nx = len(ks)" for said in ("[step, 1]", "[k for k in range(3) if k]")},
    **{said: f"xs = [1, step]\nx = {said}" for said in ("xs[-1]", "len(xs)")},
    **{said: RANKS.format(said) for said in ("some.add(1)", "some.remove(1)", "some.discard(1)")},
    "set(me.workers)": RANKS.format("pass"),
    **{said: f"some = set(me.workers)\nx = {said}" for said in ("1 in some", "len(some)")},
    "me.scenario": "x = me.scenario.batch - 62",
    "math": "x = math.sqrt(4)",
    **{one: f"x = {one}(k for k in (1, 2))" for one in ("sum", "min", "max")},
    "tuple": "x = len(tuple(k for k in (1, 2)))",
    **{"abs": "x = abs(-2)", "round": "x = round(1.6)"},
    "super()": "x = super().gradients_per_update(2)",
    "me.beside": "x = 1\nyield from me.beside(self.late(me), me.sleep())",
    "None": "late = None\nx = 1 + (late is None)\nlate = None",
}
OUT_OF_TABLE = {
    **{
        said: f"xs = [1, 2]\nx = {said}"
        for said in (
            *("step ** 2", "1 < step < 3", "abs(step)", "int(step)", "xs[1:]", "xs.pop()", "sorted(xs)", "{1: 2}"),
            *('f"{step}"', "(y := 2)", "print(step)"),
        )
    },
    "xs = [[1], [2]]": "xs = [[1], [2]]\nx = 1",
    "lambda": "f = lambda: 1\nx = f()",
    "a, *b = xs": "xs = [1, 2]\na, *b = xs\nx = a",
    "x = step or 2": "x = step or 2",
    "global": "global LIMIT\nx = 1",
    "try": "try:\n    x = 1\nfinally:\n    pass",
    "with": "with BOX:\n    x = 1",
    "match": "match step:\n    case _:\n        x = 1",
    "raise": "x = 1\nif step > 9:\n    raise ValueError",
}
