-- Puts the locks and mutexes of a group under quarantine. Needs `guarded`, `lock`, `mutex`.
lock.status = guarded(lock.status)
mutex.status = guarded(mutex.status)
