package locktopus.peer.interop;

import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A Java thread with a name. Redisson identifies owners by thread, so the thread stays the same. */
final class NamedThread {
    private final String name;
    private final ExecutorService executor;
    private volatile Thread thread;

    NamedThread(String name) {
        this.name = name;
        executor =
                Executors.newSingleThreadExecutor(
                        work -> {
                            thread = new Thread(work, name);
                            thread.setDaemon(true);
                            return thread;
                        });
    }

    /** Runs a command after all earlier ones, and answers with its result. */
    void tell(Callable<String> command) {
        executor.execute(() -> Session.answer(name, outcome(command)));
    }

    /** Interrupts the current command. */
    void interrupt() {
        Thread running = thread;
        if (running != null) {
            running.interrupt();
        }
    }

    private static String outcome(Callable<String> command) {
        try {
            return command.call();
        } catch (Exception failure) {
            return describe(failure);
        } finally {
            // An interrupt that came too late must not hit the next command.
            Thread.interrupted();
        }
    }

    static String describe(Exception failure) {
        String message = String.valueOf(failure.getMessage()).replaceAll("\\s+", " ");
        return "error " + failure.getClass().getSimpleName() + " " + message;
    }
}
