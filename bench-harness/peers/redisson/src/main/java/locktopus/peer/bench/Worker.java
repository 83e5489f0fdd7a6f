package locktopus.peer.bench;

import com.google.gson.FieldNamingPolicy;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import locktopus.peer.Servers;
import org.HdrHistogram.Histogram;
import org.redisson.api.redisnode.RedisNode;

/**
 * The child's side of the conversation with the harness, in lines of JSON: a {@link Job} comes in,
 * {@code "ready"} goes out, the start comes in, and all records go out.
 */
public final class Worker {
    /** Time for the other processes of the round to end their warm-up, before PING is measured. */
    private static final long SETTLE_MS = 500;

    private static final Gson JSON =
            new GsonBuilder().setFieldNamingPolicy(FieldNamingPolicy.LOWER_CASE_WITH_UNDERSCORES).create();

    private record Start(long atNs) {}

    private record Done(Recorder.Wire recorder, Histograms.Stored ping) {}

    private record Failed(String reason) {}

    private final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    private volatile boolean done;

    private Worker() {}

    /** Does one job that comes in on standard input, and exits the process. */
    public static void serve() {
        try {
            new Worker().converse();
        } catch (Exception failure) {
            say(Map.of("failed", new Failed(chain(failure))));
            // At once: a Redisson without servers would keep the process alive for a while.
            Runtime.getRuntime().halt(1);
        }
        System.exit(0);
    }

    private void converse() throws IOException, InterruptedException {
        Job job = hear(Job.class);
        job.check();
        try (Servers servers = Servers.connect(job.url())) {
            Round round = new Round(job, servers.redisson());
            if (job.warmUpNs() > 0) {
                round.warmUp();
            }
            Histogram ping = ping(job, servers.node());
            say("ready");
            long startNs = hear(Start.class).atNs();
            Clock.checkStart(startNs);
            endWithHarness();
            Recorder recorder = round.measure(startNs);
            Histograms.Stored stored = ping == null ? null : Histograms.Stored.of(ping);
            done = true;
            say(Map.of("done", new Done(recorder.toWire(job.firstWorker()), stored)));
        }
    }

    /** The RTT: round trips of PING, one after another, through Redisson. */
    private static Histogram ping(Job job, RedisNode node) throws InterruptedException {
        if (job.pings() == 0) {
            return null;
        }
        if (job.warmUpNs() > 0) {
            Thread.sleep(SETTLE_MS);
        }
        Histogram histogram = Histograms.ofLatencies();
        // Java compiles PING as late as everything else.
        int warmUp = job.warmUpNs() > 0 ? job.pings() : job.pings() / 10;
        for (int round = 0; round < job.pings() + warmUp; round++) {
            long start = Clock.now();
            if (!node.ping()) {
                throw new IllegalStateException("PING failed");
            }
            if (round >= warmUp) {
                Histograms.record(histogram, Clock.now() - start);
            }
        }
        return histogram;
    }

    private <T> T hear(Class<T> type) throws IOException {
        String line = in.readLine();
        if (line == null) {
            throw new IOException("the harness went away");
        }
        return JSON.fromJson(line, type);
    }

    private static void say(Object message) {
        System.out.println(JSON.toJson(message));
        System.out.flush();
    }

    /** From now on the harness sends nothing more; if it disappears before the end, this process exits. */
    private void endWithHarness() {
        Thread watch =
                new Thread(
                        () -> {
                            try {
                                while (in.readLine() != null) {
                                    continue;
                                }
                            } catch (IOException gone) {
                                // Handled below like any other end.
                            }
                            if (!done) {
                                Runtime.getRuntime().halt(1);
                            }
                        });
        watch.setDaemon(true);
        watch.start();
    }

    private static String chain(Throwable failure) {
        StringBuilder text = new StringBuilder(String.valueOf(failure.getMessage()));
        for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
            text.append(": ").append(cause.getMessage());
        }
        return text.toString();
    }
}
