-- A hold of the fair lock, kept like Redisson's other locks. But all clients queue, so no release
-- is reserved for those that cannot.
turns, letters, parity = false, 'f', 1
