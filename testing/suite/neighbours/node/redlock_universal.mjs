// Executes commands for redlock-universal, on one server.

import { IoredisAdapter, LockAcquisitionError, createLock } from "redlock-universal";
import { Refused, converse } from "./conversation.mjs";

await converse("redlock-universal", (store) => {
    const adapter = new IoredisAdapter(store);
    let held;

    async function attempt(name, lease) {
        // Off, because it would take a busy lock for a broken server.
        const lock = createLock({ adapter, key: name, ttl: Number(lease), retryAttempts: 0, circuitBreaker: false });
        held = { lock, handle: await lock.acquire() };
        return held.handle.value;
    }

    async function acquire(name, lease) {
        for (;;) {
            try {
                return await attempt(name, lease);
            } catch (error) {
                if (!(error instanceof LockAcquisitionError)) throw error;
                await new Promise((resolve) => setTimeout(resolve, 5));
            }
        }
    }

    return {
        acquire,
        try: attempt,
        extend: async (lease) => {
            if (!(await held.lock.extend(held.handle, Number(lease)))) throw new Refused("not held");
        },
        release: async () => {
            if (!(await held.lock.release(held.handle))) throw new Refused("not held");
        },
    };
});
