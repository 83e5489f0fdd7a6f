// Reads commands line by line and answers them, as neighbour_libraries/worker.rs describes.

import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import Redis from "ioredis";

/// A refusal, for libraries that return one as a value.
export class Refused extends Error {
    name = "Refused";
}

/// `begin` gets a client for each server and returns the commands of this library.
export async function converse(library, begin) {
    const input = createInterface({ input: process.stdin });
    // The test is gone, so the process exits even while it waits.
    input.on("close", () => process.exit(0));
    const lines = input[Symbol.asyncIterator]();
    const say = (text) => process.stdout.write(`${text}\n`);
    const { value: urls } = await lines.next();
    const commands = begin(...urls.split(" ").map((url) => new Redis(url)));
    const version = JSON.parse(readFileSync(`node_modules/${library}/package.json`)).version;
    say(`ok ${version}`);
    for (let next = await lines.next(); !next.done; next = await lines.next()) {
        const [verb, ...words] = next.value.split(" ");
        if (!(verb in commands)) throw new Error(`not a command: ${verb}`);
        try {
            const value = await commands[verb](...words);
            say(typeof value === "string" ? `ok ${value}` : "ok");
        } catch (error) {
            say(`no ${error.name} ${error.message.replaceAll("\n", " ")}`);
        }
    }
}
