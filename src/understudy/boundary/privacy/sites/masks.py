"""Masks that cancel in the sum: what the aggregator sees of one site is as good as random numbers.

Each two sites agree on a secret that the aggregator, who carries their public keys, can't compute (X25519), and stretch
it into one random number for each count of each question (HKDF, ChaCha20). The one whose name comes first adds it, the
other takes it off, modulo 2^64 (Bonawitz et al. 2017). Nothing is recovered when a site drops out: the sum is then
random numbers, the question is refused, and it is answered from the sites' records once all are back.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import SiteError, installing

PLACE = struct.Struct("<QQ")
SECRET = b"understudy pair of sites 1"
STREAM = b"understudy mask 1"


def new_key() -> str:
    """A private key for one session, in hexadecimal."""
    return _key().generate().private_bytes_raw().hex()


def public_of(private: str) -> str:
    """What the other sites are told."""
    return _key().from_private_bytes(bytes.fromhex(private)).public_key().public_bytes_raw().hex()


@dataclass(frozen=True)
class Masks:
    """Of one site in one session: with each other site a secret, and whether its masks are added or taken off."""

    pairs: tuple[tuple[bool, bytes], ...]

    @classmethod
    def agreed(cls, name: str, private: str, keys: Mapping[str, str], session: str) -> Masks:
        """From this site's private key, and the public keys of all sites by name."""
        if keys.get(name) != public_of(private):
            raise SiteError(f"the keys that site {name!r} was told have another in the place of its own", name)
        if len(set(keys.values())) != len(keys):
            raise SiteError("two sites were told to have the same key; begin anew", name)
        return cls(
            tuple(
                (name < other, _secret(private, public, f"{session} {min(name, other)} {max(name, other)}"))
                for other, public in sorted(keys.items())
                if other != name
            )
        )

    def hide(self, place: int, arrays: list[NDArray[np.uint64]]) -> list[NDArray[np.uint64]]:
        """The answers to one question under all its masks."""
        return [self._hidden(place, number, array) for number, array in enumerate(arrays)]

    def _hidden(self, place: int, number: int, array: NDArray[np.uint64]) -> NDArray[np.uint64]:
        hidden = array.copy()
        for adds, secret in self.pairs:
            mask = _stream(secret, place, number, array.size).reshape(array.shape)
            # Each pair of sites adds and takes off the same numbers; modulo 2^64 nothing is left in the sum.
            hidden = hidden + mask if adds else hidden - mask
        return hidden


def _key() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    except ImportError:
        raise SiteError(f"masks need the package cryptography: {installing('federated')}", None) from None
    return X25519PrivateKey


def _secret(private: str, public: str, pair: str) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    try:
        other = X25519PublicKey.from_public_bytes(bytes.fromhex(public))
        shared = _key().from_private_bytes(bytes.fromhex(private)).exchange(other)
    except ValueError:
        raise SiteError("the key of another site is no key; begin anew", pair) from None
    return _derived(shared, SECRET + pair.encode())


def _stream(secret: bytes, place: int, number: int, size: int) -> NDArray[np.uint64]:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

    # A key of its own for each array of each question: no stream is ever used twice.
    key = _derived(secret, STREAM + PLACE.pack(place, number))
    stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(8 * size))
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64)


def _derived(secret: bytes, purpose: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(secret)
