package neighbour;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** Executes commands, line by line; neighbour_libraries/worker.rs describes the protocol. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> read(lines), "reader");
        reader.setDaemon(true);
        reader.start();
        LettuceConnectionFactory connections = connect(URI.create(lines.take().strip()));
        Library library =
                switch (arguments[0]) {
                    case "spring" -> new Spring(connections);
                    case "shedlock" -> new ShedLock(connections);
                    case "redisson" -> new Redisson();
                    default -> throw new IllegalArgumentException(arguments[0]);
                };
        output.println("ok " + library.version());
        while (true) {
            String[] words = lines.take().strip().split(" ");
            try {
                String value = library.does(words);
                output.println(value.isEmpty() ? "ok" : "ok " + value);
            } catch (Library.Refused | IllegalStateException | java.util.ConcurrentModificationException refused) {
                output.println("no " + refused.getClass().getSimpleName() + " " + refused.getMessage());
            }
        }
    }

    private static void read(BlockingQueue<String> lines) {
        try (BufferedReader input =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                lines.add(line);
            }
        } catch (IOException broken) {
            System.err.println(broken);
        }
        // The test is gone, so the process exits even while it waits.
        Runtime.getRuntime().halt(0);
    }

    private static LettuceConnectionFactory connect(URI url) {
        RedisStandaloneConfiguration server = new RedisStandaloneConfiguration(url.getHost(), url.getPort());
        LettuceConnectionFactory connections = new LettuceConnectionFactory(server);
        connections.afterPropertiesSet();
        connections.start();
        return connections;
    }
}
