"""The errors a user can meet. The first line of a message is complete by itself: what is wrong, where, what to do."""

from __future__ import annotations


class SparsetuneError(Exception):
    """Root of every error that sparsetune raises on purpose."""


class ExpressionError(SparsetuneError, ValueError):
    """The expression is not index notation, or its operands do not match it."""


class FormatError(SparsetuneError, ValueError):
    """A storage format is not meaningful, or does not fit its tensor."""


class ShapeError(SparsetuneError, ValueError):
    """Extents of operands disagree, or an extent is unknown."""


class ScheduleError(SparsetuneError, ValueError):
    """A directive cannot be parsed, or its precondition does not hold."""


class DataError(SparsetuneError, ValueError):
    """A file or an array does not hold a tensor."""


class NotImplied(DataError, TypeError):
    """Python or NumPy tried to use a tensor as an array, a sequence or a truth value, and it is not converted on its own."""


class NetworkError(DataError):
    """A file has to be fetched, and there is no network or no answer."""


class BuildError(SparsetuneError):
    """Generated code could not be compiled or loaded on this machine."""


class TuningError(SparsetuneError):
    """No valid schedule was found, or a measurement could not be made."""


class DatabaseError(SparsetuneError):
    """The schedule database cannot be read or written."""


class ResourceError(SparsetuneError, MemoryError):
    """There is not enough memory for a call."""
