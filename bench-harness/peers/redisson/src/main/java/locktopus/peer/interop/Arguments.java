package locktopus.peer.interop;

import java.util.List;

/** The words of a command after object and verb. */
record Arguments(String object, String verb, List<String> words) {
    static Arguments of(List<String> command) {
        if (command.size() < 2) {
            throw new IllegalArgumentException("a command is OBJECT VERB ARGUMENTS...");
        }
        return new Arguments(command.get(0), command.get(1), command.subList(2, command.size()));
    }

    String name() {
        return text(0);
    }

    String text(int at) {
        if (at >= words.size()) {
            throw new IllegalArgumentException(object + " " + verb + " needs more than " + words.size() + " arguments");
        }
        return words.get(at);
    }

    long number(int at) {
        return Long.parseLong(text(at));
    }

    int count(int at) {
        return Math.toIntExact(number(at));
    }

    /** An optional time; Redisson writes -1 for none. */
    long numberOrNone(int at) {
        return has(at) ? number(at) : -1;
    }

    boolean has(int at) {
        return at < words.size();
    }

    IllegalArgumentException unknown() {
        return new IllegalArgumentException("not a command: " + object + " " + verb);
    }
}
