// node-redlock does what it is told, line by line: see neighbour_libraries/worker.rs for the conversation.

import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import Redis from "ioredis";
import Redlock from "redlock";

const ONCE = { retryCount: 0 };
const PATIENTLY = { retryCount: -1, retryDelay: 5, retryJitter: 5 };

const input = createInterface({ input: process.stdin });
// Whoever wrote the lines is gone: the process ends, whatever it waits for.
input.on("close", () => process.exit(0));
const lines = input[Symbol.asyncIterator]();
const say = (text) => process.stdout.write(`${text}\n`);
const { value: url } = await lines.next();
const store = new Redis(url);
const redlock = new Redlock([store], ONCE);
const asItComes = new Redlock([store]);
// What a server refuses is an answer here, not an event.
for (const each of [redlock, asItComes]) each.on("error", () => {});
let held;

async function take(resources, lease, settings, by = redlock) {
    held = await by.acquire(resources.split(","), Number(lease), settings);
    return `ok ${held.value}`;
}

const commands = {
    acquire: (names, lease) => take(names, lease, PATIENTLY),
    try: (names, lease) => take(names, lease, ONCE),
    "acquire-by-default": (names, lease) => take(names, lease, undefined, asItComes),
    extend: async (lease) => {
        held = await held.extend(Number(lease));
        return "ok";
    },
    release: async () => {
        await held.release();
        return "ok";
    },
};

const version = JSON.parse(readFileSync("node_modules/redlock/package.json")).version;
say(`ok ${version}`);
for (let next = await lines.next(); !next.done; next = await lines.next()) {
    const [verb, ...words] = next.value.split(" ");
    try {
        say(await commands[verb](...words));
    } catch (error) {
        say(`no ${error.name} ${error.message.replaceAll("\n", " ")}`);
    }
}
