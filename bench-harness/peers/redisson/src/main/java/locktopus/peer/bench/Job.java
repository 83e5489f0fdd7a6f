package locktopus.peer.bench;

/**
 * The job of this process: the fields of the harness's own {@code Job} that matter here. All times are
 * durations in nanoseconds.
 */
record Job(
        String scenario,
        String url,
        String kind,
        String prefix,
        int firstWorker,
        int workers,
        long holdNs,
        long durationNs,
        Long arrivalsPerSecond,
        int pings,
        long warmUpNs) {

    static final String MANY_LOCKS = "many-locks";
    static final String HOT_LOCK = "hot-lock";

    /** Refuses a job that the harness should not have sent. */
    void check() {
        boolean known = scenario.equals("uncontended") || scenario.equals(MANY_LOCKS) || scenario.equals(HOT_LOCK);
        if (!known || arrivalsPerSecond != null) {
            throw new IllegalArgumentException("Redisson is measured in closed loops that take and give back locks");
        }
    }

    /** Which lock a worker wants. */
    int lockOf(int worker) {
        return scenario.equals(MANY_LOCKS) ? worker : 0;
    }

    boolean hot() {
        return scenario.equals(HOT_LOCK);
    }
}
