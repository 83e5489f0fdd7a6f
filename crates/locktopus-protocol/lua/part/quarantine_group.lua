-- Puts locks and mutexes that are taken together under quarantine. Needs `guarded`, `lock`, `mutex`.
lock.standing = guarded(lock.standing)
mutex.standing = guarded(mutex.standing)
