// Executes commands for the mutex of redis-semaphore.

import { Mutex } from "redis-semaphore";
import { Refused, converse } from "./conversation.mjs";

await converse("redis-semaphore", (store) => {
    let held;
    // It renews automatically, unless that is switched off.
    const mutex = (name, lease, settings) =>
        new Mutex(store, name, { lockTimeout: Number(lease), refreshInterval: 0, retryInterval: 5, ...settings });

    async function take(name, lease, settings) {
        const mine = mutex(name, lease, settings);
        const taken = await mine.tryAcquire();
        held = { mine, name };
        if (!taken) throw new Refused("busy");
        return mine.identifier;
    }

    // Uses a mutex that knows the holder, as another process would: it renews the hold.
    async function extend(lease) {
        const { mine, name } = held;
        const again = mutex(name, lease, { identifier: mine.identifier, acquiredExternally: true });
        if (!(await again.tryAcquire())) throw new Refused("not held");
    }

    return {
        acquire: (name, lease) => take(name, lease, { acquireTimeout: Number.MAX_SAFE_INTEGER }),
        try: (name, lease) => take(name, lease, { acquireAttemptsLimit: 1 }),
        extend,
        // A release returns nothing, so first check whether there is something to release.
        release: async () => {
            await extend(60_000);
            await held.mine.release();
        },
    };
});
