-- Puts the lock of a kind under quarantine. Needs `guarded`, `status`. Redefines `status`.
status = guarded(status)
