-- A hold of the fair lock: as any other of Redisson's, but everybody stands in the queue, so nobody needs a turn.
turns, letters, parity = false, 'f', 1
