package locktopus.peer.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import locktopus.peer.Servers;

/**
 * A Redisson that executes commands, line by line, for tests in another process.
 *
 * <p>The first line is the URL of the servers. The answer is {@code - ok VERSION CLIENT_ID}. Then each
 * line is {@code THREAD OBJECT VERB ARGUMENTS...}. The named Java thread, which is created at its first
 * mention, runs it after its earlier commands, and answers {@code THREAD ok [VALUE]},
 * {@code THREAD no}, or {@code THREAD error CLASS MESSAGE}. Threads do not wait for each other. Words are
 * percent-encoded, times are milliseconds. {@code - interrupt THREAD} interrupts a thread's command;
 * {@code - exit} ends cleanly; the end of the input ends at once, without releasing anything.
 */
public final class Session {
    /** Names the session itself where a thread's name is expected. */
    private static final String SELF = "-";

    private final Commands commands;
    private final Map<String, NamedThread> threads = new HashMap<>();

    private Session(Servers servers) {
        commands = new Commands(servers.redisson());
    }

    public static void serve() throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String url = in.readLine();
        if (url == null) {
            return;
        }
        try (Servers servers = Servers.connect(url)) {
            answer(SELF, "ok " + Servers.version() + " " + servers.redisson().getId());
            if (!new Session(servers).obey(in)) {
                Runtime.getRuntime().halt(1);
            }
        } catch (RuntimeException failure) {
            answer(SELF, NamedThread.describe(failure));
            Runtime.getRuntime().halt(1);
        }
        answer(SELF, "ok");
        System.exit(0);
    }

    static synchronized void answer(String thread, String text) {
        System.out.println(thread + " " + text);
        System.out.flush();
    }

    /** Returns whether a command ended the session. */
    private boolean obey(BufferedReader in) throws IOException {
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            List<String> words = Arrays.stream(line.trim().split(" +")).map(Session::decode).toList();
            String name = words.get(0);
            List<String> command = words.subList(1, words.size());
            if (!name.equals(SELF)) {
                threads.computeIfAbsent(name, NamedThread::new).tell(() -> commands.run(command));
            } else if (command.equals(List.of("exit"))) {
                return true;
            } else if (command.size() == 2 && command.get(0).equals("interrupt")) {
                threads.computeIfAbsent(command.get(1), NamedThread::new).interrupt();
                answer(SELF, "ok");
            } else {
                answer(SELF, "error IllegalArgumentException not a command of the session: " + line);
            }
        }
        return false;
    }

    private static String decode(String word) {
        // This decoder is for forms, in which a plus is a space.
        return URLDecoder.decode(word.replace("+", "%2B"), StandardCharsets.UTF_8);
    }
}
