package locktopus.peer;

import locktopus.peer.bench.Worker;
import locktopus.peer.interop.Session;
import org.redisson.Redisson;

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
            case "version" -> System.out.println(version());
            default -> {
                System.err.println("usage: java -jar redisson-peer.jar worker|interop|version");
                System.exit(2);
            }
        }
    }

    /** The version of Redisson. */
    public static String version() {
        return Redisson.class.getPackage().getImplementationVersion();
    }
}
