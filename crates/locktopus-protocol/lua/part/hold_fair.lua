-- A hold of the fair lock: as Redisson's other locks, but all clients queue, so no release is
-- reserved for others.
turns, letters, parity = false, 'f', 1
