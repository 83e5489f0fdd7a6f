package locktopus.peer;

import locktopus.peer.bench.Worker;
import locktopus.peer.interop.Session;

/**
 * The programs in this jar. Worker and interop talk on standard input and output, and end when their
 * input does.
 */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        String program = arguments.length == 1 ? arguments[0] : "";
        switch (program) {
            case "worker" -> Worker.serve();
            case "interop" -> Session.serve();
            case "version" -> System.out.println(Servers.version());
            default -> {
                System.err.println("usage: java -jar redisson-peer.jar worker|interop|version");
                System.exit(2);
            }
        }
    }
}
