// Executes commands for node-redlock.

import Redlock from "redlock";
import { converse } from "./conversation.mjs";

const ONCE = { retryCount: 0 };
const PATIENTLY = { retryCount: -1, retryDelay: 5, retryJitter: 5 };

await converse("redlock", (...stores) => {
    const redlock = new Redlock(stores, ONCE);
    const asItComes = new Redlock(stores);
    // A refusal by a server is an answer here, not an event.
    for (const each of [redlock, asItComes]) each.on("error", () => {});
    let held;

    async function take(resources, lease, settings, by = redlock) {
        held = await by.acquire(resources.split(","), Number(lease), settings);
        return held.value;
    }

    return {
        acquire: (names, lease) => take(names, lease, PATIENTLY),
        try: (names, lease) => take(names, lease, ONCE),
        "acquire-by-default": (names, lease) => take(names, lease, undefined, asItComes),
        defaults: () => {
            const names = ["retryCount", "retryDelay", "retryJitter", "automaticExtensionThreshold"];
            return names.map((name) => `${name}=${asItComes.settings[name]}`).join(" ");
        },
        extend: async (lease) => {
            held = await held.extend(Number(lease));
        },
        release: async () => {
            await held.release();
        },
    };
});
