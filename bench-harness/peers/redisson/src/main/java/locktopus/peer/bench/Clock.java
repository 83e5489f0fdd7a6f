package locktopus.peer.bench;

/**
 * The machine's monotonic clock, which all processes of a run share. On Linux {@link System#nanoTime} is
 * {@code CLOCK_MONOTONIC} itself, the clock of the harness's start time. Elsewhere that is not specified,
 * so {@link #checkStart} checks it.
 */
final class Clock {
    /** The start is announced this far ahead at most. */
    private static final long FURTHEST_START_NS = 10_000_000_000L;

    private Clock() {}

    static long now() {
        return System.nanoTime();
    }

    static void checkStart(long atNs) {
        long ahead = atNs - now();
        if (Math.abs(ahead) > FURTHEST_START_NS) {
            throw new IllegalStateException(
                    "the clock of this Java is not the machine's monotonic clock: the start is " + ahead + " ns away");
        }
    }
}
