"""Random bits, and uniform reals of which only as many digits are drawn as a question needs.

A *lazy uniform* is the infinite binary expansion of a real U, uniform on (0, 1), of which the first digits are
known. Whatever the known digits leave open is settled by drawing more digits, never by rounding: so a law that is
defined by comparing U with real numbers is sampled exactly, provided that the words are uniform and independent.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InternalError

WORD = 64
SHORT, LONG = 31, 63  # digits in half a word and in a word, when the last bit is set aside as a coin


class Entropy(Protocol):
    """A source of independent uniform 64-bit words; only a secure one can carry a privacy claim."""

    @property
    def secure(self) -> bool: ...

    def words(self, count: int) -> NDArray[np.uint64]: ...


class SystemEntropy:
    """The operating system's CSPRNG.

    >>> SystemEntropy().words(3).shape
    (3,)
    """

    secure = True

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededEntropy:
    """Repeatable words for tests; a release made with them is stamped TEST-ONLY, since a seed can be guessed.

    >>> bool((SeededEntropy(7).words(3) == SeededEntropy(7).words(3)).all())
    True
    """

    secure = False

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.atleast_1d(np.asarray(self._bits.random_raw(count), dtype=np.uint64))


@dataclass(frozen=True)
class LazyUniform:
    """One uniform real U: its first `bits` binary digits, read as the integer `digits`."""

    digits: int
    bits: int
    entropy: Entropy

    def refined(self) -> LazyUniform:
        """The same real, with one more word of its expansion known."""
        word = int(self.entropy.words(1)[0])
        return LazyUniform(self.digits << WORD | word, self.bits + WORD, self.entropy)

    def complement(self) -> LazyUniform:
        """1 - U: the expansion with every digit flipped, so the digits still to come are as uniform as before."""
        return LazyUniform((1 << self.bits) - 1 - self.digits, self.bits, self.entropy)

    def context(self) -> Context:
        """Decimal arithmetic far finer than the 2**-bits that is unknown of U."""
        return Context(prec=12 + self.bits // 3)

    def exponential(self) -> tuple[Decimal, Decimal]:
        """Certain bounds on -ln U, which has the unit exponential law."""
        context, whole = self.context(), Decimal(1 << self.bits)
        above = context.next_plus(context.divide(Decimal(self.digits + 1), whole))
        below = context.next_minus(context.divide(Decimal(self.digits), whole))
        # copy_negate, because a unary minus would round to the thread's own precision.
        high = ln_below(below, context).copy_negate() if self.digits else Decimal("Infinity")
        return max(ln_above(above, context).copy_negate(), Decimal(0)), high


@dataclass(frozen=True)
class LazyUniforms:
    """Many uniform reals: each lane is a half word or a word, whose leading `bits` are known digits of one U.

    The lowest bit of a lane is never a digit: it is a fair coin, independent of U.
    """

    lanes: NDArray[np.unsignedinteger[Any]]
    bits: int
    entropy: Entropy

    @classmethod
    def draw(cls, count: int, bits: int, entropy: Entropy) -> LazyUniforms:
        """`count` lanes; few bits (down to 1) only make refinement more common, they never change a law."""
        if not 1 <= bits <= LONG:
            raise InternalError(f"bits is {bits} but must be in 1..{LONG}.", bits)
        if bits > SHORT:
            return cls(entropy.words(count), bits, entropy)
        return cls(entropy.words((count + 1) // 2).view(np.uint32)[:count], bits, entropy)

    def coins(self) -> NDArray[np.bool_]:
        return np.asarray(np.bitwise_and(self.lanes, 1), dtype=np.bool_)

    def digits(self) -> NDArray[np.signedinteger[Any]]:
        """The known digits as non-negative signed integers, which convert to float64 faster than unsigned ones."""
        spare = 8 * self.lanes.itemsize - self.bits
        known: NDArray[np.unsignedinteger[Any]] = np.right_shift(self.lanes, spare)
        return known.view(np.int32) if known.itemsize == 4 else known.view(np.int64)

    def floors(self) -> NDArray[np.float64]:
        """The left end of what is known: U - floor is in [0, 2**-bits], up to a relative rounding of 2**-53."""
        left = self.digits().astype(np.float64)
        left *= math.ldexp(1.0, -self.bits)
        return left

    def __getitem__(self, index: int) -> LazyUniform:
        return LazyUniform(int(self.lanes[index]) >> (8 * self.lanes.itemsize - self.bits), self.bits, self.entropy)


def ln_below(value: Decimal, context: Context) -> Decimal:
    """A certain lower bound on ln(value): decimal's ln is correctly rounded, so the truth is within one unit of it."""
    return context.next_minus(context.ln(value))


def ln_above(value: Decimal, context: Context) -> Decimal:
    """A certain upper bound on ln(value), for the same reason."""
    return context.next_plus(context.ln(value))
