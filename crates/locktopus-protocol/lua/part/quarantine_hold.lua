-- Puts the lock of a kind under quarantine. Needs `guarded`, `standing`. Redefines `standing`.
standing = guarded(standing)
